#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Packets whose doorbell waits: none waits for what may not come, and none is
# lost without being counted when the interface goes down.

export TEST=doorbell TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

if [ "$DRIVER" = c ]; then
	skip "doorbells that wait" "the C driver lets none wait"
	exit 0
fi

begin
check "forwarding is set up" forwarding_on
stop_if_failed
settle

# on_wire NAME: what the card has put on the second port's wire, into REPLY
on_wire() {
	wire_try '{"cmd":"stats","port":1}' && answer "$1"
}

listen single
# A second passes before a frame counts as lost; the next one is sent after that.
one_by_one() {
	local round out=0
	frames 1
	for ((round = 0; round < 20; round++)); do
		wire_try "$REQUEST" || return 1
		answer forwarded
		out=$((out + REPLY))
	done
	[ "$out" = 20 ] || {
		echo "only $out of 20 came out" >&2
		return 1
	}
}
counters "$P1" tx_doorbells
before=$REPLY
check "20 single frames with nothing behind them leave at once" one_by_one
counters "$P1" tx_doorbells
if [ $((REPLY - before)) -ge 20 ]; then
	ok "each had a doorbell of its own"
else
	not_ok "each had a doorbell of its own" "there were $((REPLY - before))"
fi
before=$REPLY
all_forwarded "2000 frames in bursts" 2000
counters "$P1" tx_doorbells
if [ $((REPLY - before)) -lt 2000 ]; then
	ok "frames of a burst share doorbells"
else
	not_ok "frames of a burst share doorbells" "there were $((REPLY - before))"
fi
# One that is not sent by a poll function.
more_on_wire() {
	on_wire tx_frames && [ "$REPLY" -gt "$1" ]
}
sent_alone() {
	on_wire tx_frames || return 1
	local before=$REPLY
	[ "$(python3 "$TESTS/flood.py" "$P1" 1 5)" = 1 ] || return 1
	until_true 3 more_on_wire "$before"
}
check "a single frame that a program sends leaves at once" sent_alone
quiet single

# The card sends, but does not say so: the queue stops, by its limit of bytes or
# because the ring is full, and nobody comes to ring for what the ring holds.
listen stopped
echo "skbulk: provokes netdev" >/dev/kmsg
inflight=byte_queue_limits/inflight
stopped() {
	local before taken sent
	on_wire tx_bytes || return 1
	before=$REPLY
	wire_try '{"cmd":"fault","port":1,"kind":"tx_no_done","count":100000}' || {
		echo "the model knows no tx_no_done: $ANSWER" >&2
		return 1
	}
	frames 700 100
	REQUEST=${REQUEST/'"drain_ms":1000,"timeout_ms":60000'/'"drain_ms":300,"timeout_ms":2500'}
	wire_try "$REQUEST" || return 1
	queues_sum "$P1" "$inflight"
	taken=$REPLY
	on_wire tx_bytes || return 1
	sent=$((REPLY - before))
	if [ "$taken" = 0 ] || [ "$taken" -ge 70000 ]; then
		echo "$taken bytes in flight: the queue was not stopped" >&2
		return 1
	fi
	[ "$sent" = "$taken" ] || {
		echo "the ring holds $taken bytes, of which $sent have left" >&2
		return 1
	}
}
if [ -e "/sys/class/net/$P1/queues/tx-0/$inflight" ]; then
	check "all that a stopped queue has taken leaves" stopped
else
	skip "all that a stopped queue has taken leaves" "no byte queue limits"
fi
goes_on() {
	wire_try '{"cmd":"fault","port":1,"kind":"none"}' &&
		ip link set "$P1" down && forwarding_on
}
check "the port is set down and up" goes_on
works "after the queue was stopped"
quiet "stopped queue" "NETDEV WATCHDOG"

listen ifdown
# Sum up what the driver took, what it says became of that, and what the wire saw.
declare -A sum=()
note() {
	counters "$P1" tx_packets && sum[${1}_sent]=$REPLY
	counters "$P1" tx_lost && sum[${1}_lost]=$REPLY
	counters "$P1" tx_refused && sum[${1}_refused]=$REPLY
	on_wire tx_frames && sum[${1}_wire]=$REPLY
}
downs() {
	local round sender
	for ((round = 0; round < 10; round++)); do
		python3 "$TESTS/flood.py" "$P1" 1000000 20 >>/tmp/flood.$$ &
		sender=$!
		until_true 10 grows || return 1
		pause 0.3
		ip link set "$P1" down || return 1
		wait "$sender" || return 1
		forwarding_on || return 1
	done
}
grows() {
	local before
	counters "$P1" tx_packets
	before=$REPLY
	pause 0.1
	counters "$P1" tx_packets
	[ "$REPLY" -gt $((before + 10)) ]
}
settle
note before
: >/tmp/flood.$$
check "10 times down while a program sends" downs
settle
note after
sent=$((sum[after_sent] - sum[before_sent]))
lost=$((sum[after_lost] - sum[before_lost]))
refused=$((sum[after_refused] - sum[before_refused]))
wired=$((sum[after_wire] - sum[before_wire]))
taken=$(awk '{ sum += $1 } END { print sum + 0 }' /tmp/flood.$$)
known="$taken taken; $sent sent, $lost lost, $refused refused; $wired on the wire"
echo "# $known"
# The stack sends a few of its own when an interface comes up.
if [ "$taken" -gt 0 ] && [ $((sent + lost + refused)) -ge "$taken" ] &&
	[ $((sent + lost + refused)) -le $((taken + 200)) ]; then
	ok "each frame that the driver took is counted as sent or lost"
else
	not_ok "each frame that the driver took is counted as sent or lost" "$known"
fi
# One that was being sent when the card was stopped may be on the wire and lost.
if [ "$wired" -ge "$sent" ] && [ "$wired" -le $((sent + lost)) ]; then
	ok "what counts as sent was on the wire"
else
	not_ok "what counts as sent was on the wire" "$known"
fi
works "after going down while a program sends"
quiet ifdown
