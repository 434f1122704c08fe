#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# xdp_features.sh PORT PEER ...: the kernel's xdp_features over a cable between two ports, as its
# test_xdp_features.sh over veth. The ends talk about the test over veth, also here: a port may lose
# its link when a program is attached.

cd "$(dirname "$0")" || exit 1
. ./ports
port=$1 peer=$2 log=$(mktemp)

# addresses NUMBER PORT PREFIX [OPTION...]: bring a port up; the options are those of ip.
addresses() {
	ip "${@:4}" addr add "192.0.2.$1/24" dev "$2"
	ip "${@:4}" addr add "$3::$1/64" nodad dev "$2"
	ip "${@:4}" link set "$2" up
}

ip netns add tester
trap 'ip link delete control; ip -n tester link set "$peer" netns 1; ip netns delete tester
	rm "$log"' EXIT
ip link set "$peer" netns tester
ip link add control type veth peer name control netns tester
addresses 1 "$port" 2001:db8:1
addresses 2 "$peer" 2001:db8:1 -n tester
ip addr add 2001:db8:2::1/64 nodad dev control
ip -n tester addr add 2001:db8:2::2/64 nodad dev control
ip link set control up
ip -n tester link set control up

# listening: whether the port's end is there, or never will be.
listening() {
	! kill -0 "$dut" 2>/dev/null || ss -Hltn 'sport = :12345' | grep -q .
}

echo 1..6
for feature in PASS DROP ABORTED TX REDIRECT NDO_XMIT; do
	wait_for linked "$port"
	wait_for linked "$peer" tester
	# As there, by both versions of IP.
	case $feature in
	PASS | ABORTED | REDIRECT) net=2001:db8:1:: ;;
	*) net=::ffff:192.0.2. ;;
	esac
	words=(-f "XDP_$feature" -D "${net}1" -T "${net}2")
	./xdp_features "${words[@]}" "$port" >"$log" 2>&1 &
	dut=$!
	wait_for listening
	timeout 60 ip netns exec tester ./xdp_features -t "${words[@]}" -C 2001:db8:2::1 "$peer" \
		>>"$log" 2>&1
	kill -KILL "$dut" 2>/dev/null
	wait "$dut" 2>/dev/null
	ip link set "$port" xdp off
	ip -n tester link set "$peer" xdp off
	sed -i 's/\x1b\[[0-9;]*m//g' "$log"
	found=$(sed -n 's/^Feature .*: //p' "$log")
	[ "$found" != "[DETECTED][ADVERTISED]" ] || found=
	result "XDP_$feature" "$found"
done
exit "$failed"
