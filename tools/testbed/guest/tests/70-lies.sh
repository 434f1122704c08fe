#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The card lies, or is pulled out: the driver must survive what it reads.

export TEST=lies TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

if [ "$DRIVER" = c ]; then
	# It believes the card; what follows is not for it to pass.
	skip "a card that lies" "only the Rust driver promises to survive that"
	exit 0
fi

begin
check "forwarding is set up" forwarding_on
stop_if_failed
defer wire_try '{"cmd":"fault","port":0,"kind":"none"}'
defer wire_try '{"cmd":"fault","port":1,"kind":"none"}'

# fault PORT KIND COUNT [VALUE]
fault() {
	wire_try "{\"cmd\":\"fault\",\"port\":$1,\"kind\":\"$2\",\"count\":$3,\"value\":${4:-0}}" ||
		not_ok "the model knows the fault $2" "$ANSWER"
}

# lie NAME PORT KIND COUNT [VALUE]: frames while the card lies, then the truth.
# Frames may be lost and, where the lie is about their length, be damaged; what
# counts is that the kernel stays whole and the driver goes on.
lie() {
	local name=$1 errors sent
	shift
	listen "$name"
	statistic "$P0" rx_errors
	errors=$REPLY
	fault "$@"
	some_frames 300 200
	answer sent
	sent=$REPLY
	case $2${4:+=$4} in
	rx_no_eop | rx_length=1)
		# Two frames that were glued together are not two frames, and what
		# is too short to have an address is not one.
		answer forwarded
		if [ "$REPLY" -lt "$sent" ]; then
			ok "$name: changes what comes out"
		else
			not_ok "$name: changes what comes out" "$ANSWER"
		fi
		;;
	rx_length=* | rx_ones | rx_error=*)
		statistic "$P0" rx_errors
		if [ "$REPLY" -gt "$errors" ]; then
			ok "$name: counted as errors"
		else
			not_ok "$name: counted as errors" "rx_errors stayed at $errors"
		fi
		;;
	esac
	wire_try "{\"cmd\":\"fault\",\"port\":$1,\"kind\":\"none\"}"
	# What is left of a frame without end goes with the next one.
	some_frames 64
	works "$name"
	quiet "$name"
}

lie "a length of 0" 0 rx_length 50 0
lie "a length of 1" 0 rx_length 50 1
lie "a length beyond the buffer" 0 rx_length 50 16383
lie "the greatest length" 0 rx_length 50 65535
lie "no end of packet, once" 0 rx_no_eop 1
lie "no end of packet, 40 times" 0 rx_no_eop 40
lie "never an end of packet" 0 rx_no_eop 100000
lie "a write-back of ones" 0 rx_ones 50
lie "all error bits" 0 rx_error 50 4293918720
lie "a wrong transmit head" 1 tx_head 50 65535

lie "interrupts for nothing" 0 interrupt 1

# Sent, but never reported: the ring is stuck behind the first of these frames
# for ever, and only a restart gets it going. The watchdog says so, loudly.
listen hang
echo "skbulk: provokes netdev" >/dev/kmsg
timeouts() {
	queues_sum "$P1" tx_timeout
	[ "$REPLY" -gt "$1" ]
}
hung_up() {
	local before
	queues_sum "$P1" tx_timeout
	before=$REPLY
	wire_try '{"cmd":"fault","port":1,"kind":"tx_no_done","count":8}' || {
		echo "the model knows no tx_no_done: $ANSWER"
		return 1
	}
	some_frames 700
	until_true 40 timeouts "$before" || {
		echo "the watchdog did not bark"
		return 1
	}
	wire_try '{"cmd":"fault","port":1,"kind":"none"}'
	until_true 20 has_carrier "$P1"
}
check "a transmitter that hangs is noticed" hung_up
works "after the transmitter hung" 2000
same "the driver said what it saw" 1 \
	"$(dmesg | grep -c 'transmit queue [0-9]* hangs: head [0-9]*, tail [0-9]*')"
quiet "a transmitter that hangs" "NETDEV WATCHDOG"

# Pulled out: every read is ones. The driver must neither hang nor crash, and
# work again when the card is back.
listen removal
pulled_out() {
	local port=${PCI_PORT[0]}
	traffic_on
	pause 1
	wire_try '{"cmd":"fault","port":0,"kind":"remove"}' || {
		echo "the model does not remove: $ANSWER"
		return 1
	}
	pause 2
	ip link set "$P0" down
	ethtool -S "$P0" >/dev/null
	ip link set "$P0" up
	echo "$port" >"/sys/bus/pci/drivers/$MODULE/unbind" || return 1
	wire_try '{"cmd":"fault","port":0,"kind":"none"}' || return 1
	echo "$port" >"/sys/bus/pci/drivers/$MODULE/bind" || return 1
	rm -f "$TRAFFIC_FILE.on"
	wait "$TRAFFIC"
	find_ports
}
check "a card pulled out under traffic can be unbound and comes back" pulled_out
works "after the card was pulled out"
quiet "card pulled out"
