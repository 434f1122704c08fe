#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# xdp-bench.sh A B C D: the modes of xdp-bench, of xdp-tools, with port B. Frames come from A, and
# those that are redirected leave by C for D: there is a cable from A to B, and one from C to D.

cd "$(dirname "$0")" || exit 1
. ./ports
a=$1 b=$2 c=$3 d=$4 log=$(mktemp) frames=100 length=100
trap 'rm "$log" "$log.sent"' EXIT
# libxdp keeps its programs there.
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
for port in "$a" "$b" "$c" "$d"; do
	# Each frame counts, whomever it is for.
	sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"
	ip link set "$port" promisc on up
done
to=$(cat "/sys/class/net/$b/address")

all_linked() {
	linked "$b" && linked "$a" && linked "$c" && linked "$d"
}

# count NAME: back at A, out at D, up in the stack of this machine, or in the summary.
count() {
	case $1 in
	back) cat "/sys/class/net/$a/statistics/rx_packets" ;;
	out) cat "/sys/class/net/$d/statistics/rx_packets" ;;
	up) awk '/^Ip: [0-9]/ { print $4 }' /proc/net/snmp ;;
	*) awk -v name="$1" '$1 == "Packets" && $2 == name { print $4 }
		/^ [RT]X/ && $1 == name { print $2 }' "$log" ;;
	esac
}

# under_way: whether it shows its first counters, or has ended.
under_way() {
	grep -q '[0-9] rx/s' "$log" || ! kill -0 "$bench" 2>/dev/null
}

send() {
	mausezahn "$a" -q -c "$frames" -p "$length" -b "$to" -A 192.0.2.1 -B 192.0.2.2 \
		-t udp sp=1000,dp=2000
}

# By ndo_xdp_xmit.
generate() {
	xdp-trafficgen udp -n "$frames" -m "$to" "$a"
}

# bench NAME SEND COUNTERS WORDS...: all frames that SEND sends are in each of the counters.
bench() {
	local counter now why=
	local -A before
	wait_for all_linked
	stdbuf -oL timeout 120 xdp-bench "${@:4}" -i 1 >"$log" 2>&1 &
	bench=$!
	wait_for under_way
	wait_for all_linked
	for counter in $3; do
		before[$counter]=$(count "$counter")
	done
	"$2" &>"$log.sent"
	sleep 2
	kill "$bench" 2>/dev/null
	if ! wait "$bench"; then
		why=$(awk '!/libbpf/ && /Fail|Cannot|Error/ { print; exit }' "$log")
		why=${why:-xdp-bench fails}
	fi
	for counter in $3; do
		now=$(count "$counter")
		if [ -z "$why" ] && [ "$((now - ${before[$counter]:-0}))" != "$frames" ]; then
			why="$counter: $((now - ${before[$counter]:-0})) of $frames frames"
		fi
	done
	[ -z "$why" ] || tail -qn 8 "$log" "$log.sent" | sed 's/^/# /'
	result "$1" "$why"
}

echo 1..16
bench drop send received drop "$b"
bench drop-load-bytes send received drop -p read-data -l load-bytes "$b"
bench drop-rxq send received drop -p parse-ip -r "$b"
bench drop-generated generate received drop "$b"
bench pass send "received up" pass "$b"
bench tx send "received back" tx "$b"
bench redirect send "received redirected transmitted out" redirect -s "$b" "$c"
bench redirect-map send "received redirected transmitted out" redirect-map -s "$b" "$c"
bench redirect-multi send "received transmitted out" redirect-multi "$b" "$c"
bench redirect-cpu send "received up" redirect-cpu -p round-robin -c 0 -c 1 "$b"
# Sockets of AF_XDP, for the first queue.
ethtool -L "$b" combined 1
bench xsk-drop-copy send RX xsk-drop -p -C copy "$b"
bench xsk-drop send RX xsk-drop -p -C zero-copy "$b"
bench xsk-tx send "RX TX back" xsk-tx -p -C zero-copy "$b"
length=1400
bench xsk-tx-long-2048 send "RX TX back" xsk-tx -p -C zero-copy -f 2048 "$b"
# In several buffers.
length=4000
for port in "$a" "$b" "$c" "$d"; do
	ip link set "$port" mtu 9000
done
bench tx-frags send "received back" tx "$b"
bench redirect-frags send "received transmitted out" redirect-map "$b" "$c"
exit "$failed"
