#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Loading and unloading, up and down, many times over, and it still works.

export TEST=lifecycle TIME_LIMIT=900
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

# The C driver is here to judge the model, not to be tested itself, and its probe
# takes several times as long as that of the Rust driver.
case $DRIVER in
c) ROUNDS=${ROUNDS:-10} ;;
*) ROUNDS=${ROUNDS:-50} ;;
esac

begin
listen ifupdown
both() {
	ip -batch - <<-END
		link set $P0 $1
		link set $P1 $1
	END
}
ups_and_downs() {
	local round
	for ((round = 0; round < ROUNDS; round++)); do
		both up || return 1
		# Every tenth round waits for the carrier: both a link that came up
		# and one that did not get that far are taken down.
		[ $((round % 10)) -ne 0 ] || until_true 20 has_carrier "$P0" "$P1" || return 1
		both down || return 1
		[ $((round % 10)) -ne 0 ] || pages_back
	done
}
check "$ROUNDS times up and down" ups_and_downs
works "after $ROUNDS times up and down"
quiet "up and down"

listen reload
# The modules that the driver needs stay: it alone comes and goes.
file=$(find /mnt/build -name "$MODULE.ko" -print -quit)
loads_and_unloads() {
	local round
	for ((round = 0; round < ROUNDS; round++)); do
		rmmod "$MODULE" || return 1
		insmod "$file" || return 1
		# Unloaded while up, while down, and as soon as it was loaded.
		case $((round % 3)) in
		0) find_ports && both up || return 1 ;;
		1) find_ports || return 1 ;;
		esac
	done
	find_ports
}
check "$ROUNDS times unloaded and loaded" loads_and_unloads
works "after $ROUNDS times unloaded and loaded"
quiet "load and unload"

# A file of the interface that is open when the driver goes.
listen "open file"
hold_open() {
	exec 7<"/sys/class/net/$P0/statistics/rx_packets" || return 1
	unload || return 1
	read -r _ <&7
	exec 7<&-
	load && find_ports
}
check "unloaded while a file of it is open" hold_open
works "after the unload with a file open"
quiet "open file"
