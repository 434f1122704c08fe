#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Skb heads that CPUs exchange through a pool, switched on and off under
# traffic; CPUs that go offline while a pool is in use.

export TEST=pool TIME_LIMIT=900
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

SWITCH=/proc/sys/net/core/skb_qmempool
STATISTICS=/sys/kernel/debug/qmempool

if [ ! -e "$SWITCH" ]; then
	skip "skb heads in a pool" "this kernel has no CONFIG_SKB_QMEMPOOL"
	exit 0
fi

begin

switch() {
	echo "$1" >"$SWITCH" && [ "$(<"$SWITCH")" = "$1" ]
}
defer switch 0

listen pool
check "forwarding is set up" forwarding_on
stop_if_failed
check "the pool can be switched on" switch 1
all_forwarded "20000 frames with the pool" 20000 60
all_forwarded "2000 frames of 1514 bytes with the pool" 2000 1514
all_forwarded "2000 frames the other way with the pool" 2000 60 1
# The size of such a file is always 0.
has_statistics() {
	grep -q '^hits' "$STATISTICS/skb"
}
check "there are statistics" has_statistics
refused() {
	! echo 2 2>/dev/null >"$SWITCH" && [ "$(<"$SWITCH")" = 1 ]
}
check "there is no third position" refused
check "the pool can be switched off" switch 0
check "it is gone" test ! -e "$STATISTICS/skb"

on_and_off() {
	local round
	for ((round = 0; round < 10; round++)); do
		switch 1 && pause 0.2 && switch 0 && pause 0.2 || return 1
	done
}
traffic_on
check "10 times on and off under traffic" on_and_off
traffic_off "on and off under traffic"
works "after switching"
quiet pool

listen hotplug
cpus=(/sys/devices/system/cpu/cpu[0-9]*)
LAST=${cpus[-1]}/online
come_and_go() {
	local round
	[ -e "$LAST" ] || return 0
	for ((round = 0; round < 10; round++)); do
		echo 0 >"$LAST" && pause 0.3 && echo 1 >"$LAST" && pause 0.3 || return 1
	done
}
check "the pool is on again" switch 1
traffic_on
check "10 times offline and online under traffic" come_and_go
traffic_off "CPUs come and go under traffic"
works "after CPUs came and went"
quiet hotplug
