#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Which frames the card lets in: the MAC address, multicast, promiscuous mode.

export TEST=addresses TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

OTHER=02:00:00:00:77:77

begin
listen addresses
check "forwarding is set up" forwarding_on
stop_if_failed

# in_effect: waits until the card has the filters that were asked for. Lists of
# addresses are applied from a workqueue, which any change of the link overtakes;
# what was written to registers has arrived when others have been read.
in_effect() {
	ip link set "$P0" up && ethtool -S "$P0" >/dev/null
}

# arrive NAME EXPECTED MAC: how many of 20 frames to MAC reach the stack.
arrive() {
	local before frame round
	in_effect
	# An experimental EtherType: nothing answers to it.
	printf -v frame '%s02000000000288b5%092d' "${3//:/}" 0
	statistic "$P0" rx_packets
	before=$REPLY
	for ((round = 0; round < 20; round++)); do
		wire_try "{\"cmd\":\"inject\",\"port\":0,\"hex\":\"$frame\"}" || {
			not_ok "$1" "$ANSWER"
			return
		}
	done
	if [ "$2" = 0 ]; then pause 0.5; else until_true 3 received $((before + $2)); fi
	statistic "$P0" rx_packets
	same "$1" "$2" $((REPLY - before))
}

received() {
	statistic "$P0" rx_packets
	[ "$REPLY" -ge "$1" ]
}

mac_of "$P0"
own=$REPLY
arrive "own address" 20 "$own"
arrive "broadcast" 20 ff:ff:ff:ff:ff:ff
arrive "another's address is filtered" 0 $OTHER

check "promiscuous mode can be switched on" ip link set "$P0" promisc on
arrive "promiscuous: another's address" 20 $OTHER
ip link set "$P0" promisc off
arrive "no longer promiscuous: another's address is filtered" 0 $OTHER

group=01:00:5e:01:02:03
arrive "a multicast group not joined is filtered" 0 $group
ip maddr add $group dev "$P0"
arrive "a multicast group joined" 20 $group
ip maddr del $group dev "$P0"
arrive "a multicast group left is filtered" 0 $group
ip link set "$P0" allmulticast on
arrive "all multicast: any group" 20 $group
arrive "all multicast: another's address is filtered" 0 $OTHER
ip link set "$P0" allmulticast off

# More groups than any list of the card holds, then none again.
coproc python3 "$TESTS/groups.py" "$P0" 200
if read -r -t 60 line <&"${COPROC[0]}" && [ "$line" = joined ]; then
	ok "200 multicast groups can be joined"
else
	not_ok "200 multicast groups can be joined" "groups.py failed"
fi
arrive "200 groups: one of them" 20 01:00:5e:02:00:64
arrive "200 groups: another of them" 20 01:00:5e:02:00:c8
eval "exec ${COPROC[1]}>&-"
wait "$COPROC_PID"
arrive "200 groups left: one of them is filtered" 0 01:00:5e:02:00:64

# A second unicast address, as a bridge or macvlan would ask for.
bridge_fdb() { bridge fdb "$1" $OTHER dev "$P0"; }
if bridge_fdb add 2>/dev/null; then
	arrive "a second unicast address" 20 $OTHER
	bridge_fdb del
	arrive "the second unicast address is gone" 0 $OTHER
else
	skip "a second unicast address" "bridge fdb add is not possible here"
fi

check "the MAC address can be changed" ip link set "$P0" address $OTHER
mac_of "$P0"
same "the new address is shown" $OTHER "$REPLY"
arrive "frames to the new address" 20 $OTHER
arrive "frames to the old address are filtered" 0 "$own"
works "with the new MAC address"
refuse() { ! ip link set "$P0" address "$1" 2>/dev/null; }
check "a multicast address is refused" refuse 01:00:00:00:00:01
check "an address of zeros is refused" refuse 00:00:00:00:00:00
ip link set "$P0" down
ip link set "$P0" up
mac_of "$P0"
same "the new address survives down and up" $OTHER "$REPLY"
check "the old MAC address can be set again" ip link set "$P0" address "$own"
works "with the old MAC address"
quiet addresses
