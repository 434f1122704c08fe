#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# CPUs that combine on the transmit queue: what several programs send at the same
# time leaves once and in order, and shares doorbells.

export TEST=combine-tx TIME_LIMIT=300
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

if [ "$DRIVER" != rust ]; then
	skip "CPUs that combine" "only the Rust driver does that"
	exit 0
fi
# CPUs of an emulated machine take turns for long, and hardly ever meet.
if ! natively; then
	skip "CPUs that combine" "takes too long where the machine is emulated"
	exit 0
fi

SENDERS=6 COUNT=2000
map=/tmp/numbered.$$

# flag PORT: what ethtool says of the flag, into REPLY
flag() {
	REPLY=$(ethtool --show-priv-flags "$1" | sed -n 's/^combine-tx *: *//p')
}

# reload ARGUMENT...: the driver anew
reload() {
	unload && load-driver rust "$@" && find_ports
}

# one_queue: CPUs that have a queue each do not meet.
one_queue() {
	local port
	for port in "$P0" "$P1"; do
		ethtool -L "$port" combined 1 || [ ! -e "/sys/class/net/$port/queues/tx-1" ] || return 1
	done
}

cable_gone() {
	[ ! -e /run/netns/left ] || cable_off
}

begin
listen "without the parameter"
flag "$P0"
same "the flag is off" off "$REPLY"
refused() {
	! ethtool --set-priv-flags "$P0" combine-tx on 2>/tmp/refused.$$ &&
		grep -qi "not supported" /tmp/refused.$$ &&
		dmesg | tail -n 5 | grep -q "combine-tx needs .* combine_tx=1"
}
check "it cannot be set, and the log says why" refused
flag "$P0"
same "it is still off" off "$REPLY"
quiet "without the parameter"

listen load
# Whatever becomes of this, others test the driver as it is by default.
defer reload
check "the driver is loaded with combine_tx=1" reload combine_tx=1
stop_if_failed
find_netdevs
check "all CPUs share a queue" one_queue
flag "$P0"
same "the flag is on" on "$REPLY"
defer cable_gone
check "two namespaces reach each other" cable_on
stop_if_failed
quiet load

left() { ip netns exec left "$@"; }
right() { ip netns exec right "$@"; }

# count NAME: a statistic of the sending port, into REPLY
count() {
	REPLY=$(left ethtool -S "$P0" | sed -n "s/^ *$1: //p")
}

# numbered WAY [COMMAND...]: all senders, and the command meanwhile
numbered() {
	local way=$1 to=$P1 from=$P0 receiver sender end
	shift
	[ "$way" = packet ] || to=10.9.0.2 from=10.9.0.2
	rm -f "$map.ready"
	head -c 64 /dev/zero >"$map"
	right python3 "$TESTS/numbered.py" receive "$way" "$to" "$map" "$SENDERS" "$COUNT" 30 \
		>/tmp/arrived.$$ &
	receiver=$!
	until_true 10 test -e "$map.ready" || return 1
	left python3 "$TESTS/numbered.py" send "$way" "$from" "$map" "$SENDERS" "$COUNT" 60 &
	sender=$!
	[ $# = 0 ] || "$@" || return 1
	wait "$sender"
	end=$?
	wait "$receiver"
	return "$end"
}

# all_there NAME WAY [COMMAND...]
all_there() {
	local name=$1
	shift
	check "$name: all is sent" numbered "$@"
	same "$name: each arrives once, in order" \
		"$((SENDERS * COUNT)) of $((SENDERS * COUNT)), 0 not in order" "$(</tmp/arrived.$$)"
	[[ $(</tmp/arrived.$$) == "$((SENDERS * COUNT)) of"* ]] || tell
}

# tell: what the ports have counted, to find out where something was lost
tell() {
	left ethtool -S "$P0" | awk '$2 { print "# sending:", $0 }'
	right ethtool -S "$P1" | awk '$2 { print "# receiving:", $0 }'
}

# saved NAME: of what was sent since the last call, some had no doorbell of its own
note() {
	count tx_packets && packets=$REPLY
	count tx_doorbells && doorbells=$REPLY
	count tx_combined && combined=$REPLY
}
saved() {
	local before_packets=$packets before_doorbells=$doorbells before_combined=$combined
	note
	echo "# $1: $((packets - before_packets)) packets," \
		"$((doorbells - before_doorbells)) doorbells," \
		"$((combined - before_combined)) sent by another CPU"
	if [ $((doorbells - before_doorbells)) -lt $((packets - before_packets)) ] &&
		[ "$combined" -gt "$before_combined" ]; then
		ok "$1: CPUs combine, with fewer doorbells than packets"
	else
		not_ok "$1: CPUs combine, with fewer doorbells than packets"
	fi
}

listen senders
note
all_there "$SENDERS senders past the queue discipline" packet
saved "$SENDERS senders"
check "the ports know each other" cable_known
all_there "$SENDERS senders through the queue discipline" udp
quiet senders

listen toggle
toggle() {
	local round
	for ((round = 0; round < 25; round++)); do
		left ethtool --set-priv-flags "$P0" combine-tx off || return 1
		left ethtool --set-priv-flags "$P0" combine-tx on || return 1
	done
}
all_there "the flag is set and cleared 25 times meanwhile" packet toggle
left ethtool --set-priv-flags "$P0" combine-tx off
count tx_combined
before=$REPLY
all_there "with the flag off" packet
count tx_combined
same "with the flag off, nobody combines" "$before" "$REPLY"
left ethtool --set-priv-flags "$P0" combine-tx on
quiet toggle

listen down
downs() {
	local round sender senders
	for ((round = 0; round < 20; round++)); do
		senders=()
		for sender in 1 2 3; do
			left python3 "$TESTS/flood.py" "$P0" 1000000 20 >>/tmp/flood.$$ &
			senders+=($!)
		done
		count tx_packets
		until_true 10 grows "$REPLY" || return 1
		ip -n left link set "$P0" down || return 1
		wait "${senders[@]}" || return 1
		ip -n left link set "$P0" up || return 1
		until_true 20 is_there || return 1
	done
}
grows() {
	count tx_packets
	[ "$REPLY" -gt $(($1 + 50)) ]
}
is_there() {
	[ "$(left cat "/sys/class/net/$P0/operstate")" = up ]
}
# What became of the packets that the driver took, into REPLY. The stack drops some
# itself while the port goes down, and tells the sender: these are not in here.
accounted() {
	REPLY=$(left ethtool -S "$P0" | awk \
		'/ tx_(packets|lost|refused|combine_dropped):/ { sum += $2 } END { print sum }')
}
accounted
before=$REPLY
: >/tmp/flood.$$
check "20 times down while 3 programs send" downs
accounted
known=$((REPLY - before))
taken=$(awk '{ sum += $1 } END { print sum + 0 }' /tmp/flood.$$)
echo "# $taken taken, $known sent or dropped"
# The stack sends a few of its own when an interface comes up.
if [ "$taken" -gt 0 ] && [ "$known" -ge "$taken" ] && [ "$known" -le $((taken + 400)) ]; then
	ok "each frame that the driver took is counted as sent or dropped"
else
	not_ok "each frame that the driver took is counted as sent or dropped" \
		"$taken taken, $known sent or dropped"
fi
check "the namespaces reach each other again" until_true 20 ping_across
all_there "after going down" packet
quiet down

cable_gone
works "without the cable"

# What the card has not reported keeps the queue stopped, and packets held.
listen hang
echo "skbulk: provokes netdev" >/dev/kmsg
timeouts() {
	[ "$(<"/sys/class/net/$P1/queues/tx-0/tx_timeout")" -gt "$1" ]
}
hung_up() {
	local before
	before=$(<"/sys/class/net/$P1/queues/tx-0/tx_timeout")
	wire_try '{"cmd":"fault","port":1,"kind":"tx_no_done","count":8}' || return 1
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
quiet "a transmitter that hangs" "NETDEV WATCHDOG"
