#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the driver says about itself, and whether its counters count.

export TEST=ethtool TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

begin
listen ethtool
check "forwarding is set up" forwarding_on
stop_if_failed

# info FIELD: out of ethtool -i
info() {
	ethtool -i "$P0" | sed -n "s/^$1: //p"
}
same "ethtool -i: driver" "$MODULE" "$(info driver)"
same "ethtool -i: bus-info" "${PCI_PORT[0]}" "$(info bus-info)"
same "ethtool: link detected" yes "$(ethtool "$P0" | sed -n 's/.*Link detected: //p')"
check "ethtool -S lists counters" sh -c "ethtool -S $P0 | grep -q ': [0-9]'"

# counters PORT: those that must agree with what the wire saw.
snapshot() {
	local port name
	for port in "$P0" "$P1"; do
		for name in rx_packets rx_bytes tx_packets tx_bytes; do
			statistic "$port" $name
			before[$port$name]=$REPLY
		done
	done
}
# grown NAME PORT COUNTER EXPECTED: other frames (ARP and the like) may be a few.
grown() {
	local growth most=$(($4 + $4 / 100 + 20))
	statistic "$2" "$3"
	growth=$((REPLY - before[$2$3]))
	if [ "$growth" -ge "$4" ] && [ "$growth" -le "$most" ]; then
		ok "$1"
	else
		not_ok "$1" "$3 of $2 grew by $growth, expected $4"
	fi
}
# errors: what both ports have counted as errors or drops
errors() {
	local name port
	for name in rx_errors rx_dropped tx_errors tx_dropped; do
		for port in "$P0" "$P1"; do
			statistic "$port" $name
			echo -n "$port $name $REPLY, "
		done
	done
}
declare -A before
snapshot
errors_before=$(errors)
all_forwarded "5000 frames of 200 bytes" 5000 200
# Drivers may take their counters over once a second or so.
pause 2
grown "packets received" "$P0" rx_packets 5000
grown "bytes received" "$P0" rx_bytes 1000000
grown "packets sent" "$P1" tx_packets 5000
grown "bytes sent" "$P1" tx_bytes 1000000
# What earlier tests lost, with the link down for instance, is not counted again.
same "no errors counted" "$errors_before" "$(errors)"

snapshot
ip link set "$P0" down
ip link set "$P1" down
ip link set "$P0" up
ip link set "$P1" up
shrunk=
for port in "$P0" "$P1"; do
	for name in rx_packets rx_bytes tx_packets tx_bytes; do
		statistic "$port" $name
		[ "$REPLY" -ge "${before[$port$name]}" ] ||
			shrunk+="$name of $port went from ${before[$port$name]} to $REPLY; "
	done
done
verdict "counters survive down and up" "$shrunk"

if [ "$DRIVER" = rust ]; then
	forwarding_on
	bulk() {
		ethtool -S "$P1" | awk 'tolower($1) ~ /bulk/ { sum += $2 } END { print sum + 0 }'
	}
	was=$(bulk)
	all_forwarded "5000 frames more" 5000 60
	now=$(bulk)
	if [ "$now" -gt "$was" ]; then
		ok "counters of the bulk free grow"
	else
		not_ok "counters of the bulk free grow" "from $was to $now"
	fi

	alone() {
		ethtool -S "$P1" | awk '$1 == "bulk_free_alone:" { print $2 }'
	}
	check "bulk free can be turned off" ethtool --set-priv-flags "$P1" bulk-free off
	same "the flag says so" off "$(ethtool --show-priv-flags "$P1" | awk '/^bulk-free/ { print $NF }')"
	was=$(alone)
	all_forwarded "500 frames without bulk free" 500 60
	now=$(alone)
	if [ $((now - was)) -ge 450 ]; then
		ok "bulk free off: each packet is freed by itself"
	else
		not_ok "bulk free off: each packet is freed by itself" "from $was to $now"
	fi
	check "bulk free can be turned on" ethtool --set-priv-flags "$P1" bulk-free on

	good() {
		ethtool -S "$P0" | awk '$1 == "rx_csum_good:" { print $2 }'
	}
	check "rx checksums can be turned off" ethtool -K "$P0" rx off
	was=$(good)
	all_forwarded "frames whose checksums the stack looks at" 200
	same "rx off: the driver says nothing of checksums" "$was" "$(good)"
	check "rx checksums can be turned on" ethtool -K "$P0" rx on
	all_forwarded "frames whose checksums the card looks at" 200
	now=$(good)
	if [ "$now" -gt "$was" ]; then
		ok "rx on: the driver says what the card has found"
	else
		not_ok "rx on: the driver says what the card has found" "it stayed at $now"
	fi
fi
quiet ethtool
