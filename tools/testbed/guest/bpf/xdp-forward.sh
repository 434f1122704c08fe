#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# xdp-forward.sh A B C D: xdp-forward, of xdp-tools, between the ports B and C of this machine. The
# hosts A and D are namespaces, each at the other end of a cable.

cd "$(dirname "$0")" || exit 1
. ./ports
a=$1 b=$2 c=$3 d=$4 log=$(mktemp -d)
trap 'ip -n west link set "$a" netns 1; ip -n east link set "$d" netns 1
	ip netns delete west; ip netns delete east; rm -r "$log"' EXIT
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf

# host NAME NET PORT ROUTER: a host in a network of its own, and the port that is its router.
host() {
	ip netns add "$1"
	ip link set "$3" netns "$1"
	ip addr add "10.0.$2.1/24" dev "$4"
	ip addr add "2001:db8:$2::1/64" nodad dev "$4"
	ip -n "$1" addr add "10.0.$2.2/24" dev "$3"
	ip -n "$1" addr add "2001:db8:$2::2/64" nodad dev "$3"
	ip link set "$4" up
	ip -n "$1" link set "$3" up
	ip -n "$1" route add default via "10.0.$2.1"
	ip -n "$1" route add default via "2001:db8:$2::1"
}
host west 1 "$a" "$b"
host east 2 "$d" "$c"
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1

all_linked() {
	linked "$b" && linked "$a" west && linked "$c" && linked "$d" east
}

# echoes HOST COUNT: whether all echoes come back.
echoes() {
	ip netns exec west ping -q -i 0.02 -W 5 -s 1200 -c "$2" "$1" >"$log/ping" &&
		grep -q " $2 received" "$log/ping"
}

# by_stack: the number of packets that this machine has forwarded, but not by XDP.
by_stack() {
	awk '/^Ip: [0-9]/ { sum += $7 } $1 == "Ip6OutForwDatagrams" { sum += $2 } END { print sum }' \
		/proc/net/snmp /proc/net/snmp6
}

# stream: 4 MB by TCP.
stream() {
	ip netns exec east timeout 30 socat -u TCP-LISTEN:5000 "OPEN:$log/got,creat,trunc" &
	wait_for listening
	ip netns exec west timeout 30 socat -u "OPEN:$log/data" TCP:10.0.2.2:5000
	wait $! && cmp -s "$log/data" "$log/got"
}

listening() {
	ip netns exec east ss -Hltn 'sport = :5000' | grep -q .
}

# forwards NAME BY-STACK COMMAND...: packets are forwarded, by the stack or not at all by it.
forwards() {
	local before now
	before=$(by_stack)
	if ! "${@:3}"; then
		result "$1" "no answers"
		return
	fi
	now=$(by_stack)
	if [ "$((now > before))" = "$2" ]; then
		result "$1"
	else
		result "$1" "the stack has forwarded $((now - before)) packets"
	fi
}

# order NAME WORDS...: xdp-forward does it, and neighbours are known again, which XDP does not ask
# for: they are forgotten if a link was lost.
order() {
	if xdp-forward "${@:2}" "$b" "$c" &>"$log/said"; then
		result "$1"
	else
		result "$1" "$(tail -n 1 "$log/said")"
	fi
	meet
}

meet() {
	wait_for all_linked
	wait_for echoes 10.0.2.2 1
	wait_for echoes 2001:db8:2::2 1
}

head -c 4000000 /dev/urandom >"$log/data"
meet
echo 1..12
for mode in full direct; do
	order "load-$mode" load -F "$mode"
	forwards "$mode-ipv4" 0 echoes 10.0.2.2 100
	forwards "$mode-ipv6" 0 echoes 2001:db8:2::2 100
	forwards "$mode-tcp" 0 stream
	order "unload-$mode" unload
	forwards "$mode-after" 1 echoes 10.0.2.2 10
done
exit "$failed"
