#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What may happen while packets fly: unbind, a flapping link, another MTU.

export TEST=traffic TIME_LIMIT=1500
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

# The C driver is here to judge the model, not to be tested itself.
case $DRIVER in
c) UNBINDS=4 DOWNS=3 CHANGES=1 ;;
*) UNBINDS=20 DOWNS=10 CHANGES=3 ;;
esac

begin

listen unbind
unbind_and_bind() {
	local round port driver="/sys/bus/pci/drivers/$MODULE"
	for ((round = 0; round < UNBINDS; round++)); do
		port=${PCI_PORT[$((round % 2))]}
		echo "$port" >"$driver/unbind" || return 1
		echo "$port" >"$driver/bind" || return 1
		find_ports && forwarding_on || return 1
	done
}
check "forwarding is set up" forwarding_on
stop_if_failed
traffic_on
check "$UNBINDS times unbound and bound under traffic" unbind_and_bind
traffic_off "unbind under traffic"
works "after unbinding under traffic"
quiet "unbind under traffic"

listen updown
down_and_up() {
	local round
	for ((round = 0; round < DOWNS; round++)); do
		ip link set "$P1" down && forwarding_on || return 1
		ip link set "$P0" down && forwarding_on || return 1
	done
}
traffic_on
check "$DOWNS times down and up under traffic" down_and_up
traffic_off "down and up under traffic"
quiet "down and up under traffic"

listen mtu
change_mtu() {
	local round mtu
	for ((round = 0; round < CHANGES; round++)); do
		for mtu in 9000 1400 2048 1500; do
			ip link set "$P0" mtu $mtu && ip link set "$P1" mtu $mtu || return 1
			[ "$(<"/sys/class/net/$P0/mtu")" = $mtu ] || return 1
		done
	done
}
traffic_on
check "$((4 * CHANGES)) changes of the MTU under traffic" change_mtu
traffic_off "MTU change under traffic"
refused() {
	! ip link set "$P0" mtu "$1" 2>/dev/null && [ "$(<"/sys/class/net/$P0/mtu")" = 1500 ]
}
check "an MTU of 60000 is refused" refused 60000
check "an MTU of 10 is refused" refused 10
works "after changing the MTU"
jumbo() {
	ip link set "$P0" mtu 9000 && ip link set "$P1" mtu 9000 && forwarding_on
}
check "an MTU of 9000" jumbo
all_forwarded "500 frames of 9014 bytes" 500 9014
ip link set "$P0" mtu 1500
ip link set "$P1" mtu 1500
quiet "MTU"

listen flap
defer cable_off
check "two namespaces reach each other" cable_on
flap() {
	local round state
	for ((round = 0; round < 10; round++)); do
		for state in false true; do
			wire_try "{\"cmd\":\"link\",\"port\":$((round % 2)),\"up\":$state}" || return 1
			pause 0.2
		done
	done
}
ip netns exec left ping -q -f -W 1 -w 60 10.9.0.2 >/dev/null 2>&1 &
ping=$!
check "10 flaps of the link under traffic" flap
kill -INT "$ping" 2>/dev/null
wait "$ping" 2>/dev/null
carrier_goes() {
	wire_try '{"cmd":"link","port":0,"up":false}' || return 1
	until_true 10 ip netns exec left sh -c "[ \$(cat /sys/class/net/$P0/carrier) = 0 ]"
}
carrier_comes() {
	wire_try '{"cmd":"link","port":0,"up":true}' || return 1
	until_true 10 ip netns exec left sh -c "[ \$(cat /sys/class/net/$P0/carrier) = 1 ]"
}
# /sys shows the interfaces of the namespace that mounted it; ip netns exec
# mounts it anew.
check "a link that goes down is seen" carrier_goes
check "a link that comes up is seen" carrier_comes
check "after the flaps the namespaces reach each other" until_true 15 ping_across
quiet "link flap"
