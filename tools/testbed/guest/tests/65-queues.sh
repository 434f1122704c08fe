#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Several queues: how many there are, what goes to which, and that each flow
# stays in order.

export TEST=queues TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

# The receive ring of a queue with others beside it drops what a CPU that is
# emulated, with all checkers, cannot take.
if ! natively; then
	skip "several queues" "takes too long where the machine is emulated"
	exit 0
fi

begin

# RSS of the card spreads over 16 queues.
expected=$(nproc)
[ "$expected" -le 16 ] || expected=16

# The Rust driver begins with one.
each_port() {
	local port
	for port in "$P0" "$P1"; do
		[ "$(channels "$port" 2)" = "$1" ] || ethtool -L "$port" combined "$1" || return 1
	done
}
# queues_of PORT KIND: how many rx or tx queues there are
queues_of() {
	local found=("/sys/class/net/$1/queues/$2"-*)
	echo ${#found[@]}
}
# channels PORT NUMBER: out of ethtool -l, the first is the maximum
channels() {
	ethtool -l "$1" | awk -v number="$2" '/^Combined:/ && ++found == number { print $2 }'
}

if [ "$DRIVER" = rust ]; then
	same "a port begins with one queue" "1 1" "$(channels "$P0" 2) $(channels "$P1" 2)"
	defer each_port 1
fi
check "a queue for each CPU" each_port "$expected"
check "forwarding is set up" forwarding_on
stop_if_failed
settle

listen number
for port in "$P0" "$P1"; do
	same "$port: a receive queue for each CPU" "$expected" "$(queues_of "$port" rx)"
	same "$port: a transmit queue for each CPU" "$expected" "$(queues_of "$port" tx)"
	same "$port: an interrupt for each queue" "$expected" \
		"$(grep -c "[ -]$port-TxRx-[0-9]*$" /proc/interrupts)"
	same "$port: ethtool -l says so" "$expected" "$(channels "$port" 2)"
done
check "counters of each queue" sh -c \
	"ethtool -S $P0 | grep -q '^ *rx_queue_$((expected - 1))_packets: [0-9]'"
quiet number

if [ "$expected" = 1 ]; then
	skip "frames are spread" "there is one CPU"
	exit 0
fi

# received: what each queue of the first port has received, into RECEIVED
received() {
	local queue
	RECEIVED=()
	for ((queue = 0; queue < expected; queue++)); do
		counters "$P0" "rx_queue_${queue}_packets"
		RECEIVED+=("$REPLY")
	done
}
# used LEAST: how many queues have received as much since received, into REPLY
used() {
	local was=("${RECEIVED[@]}") queue count=0
	received
	for ((queue = 0; queue < expected; queue++)); do
		[ $((RECEIVED[queue] - was[queue])) -lt "$1" ] || count=$((count + 1))
	done
	REPLY=$count
}

# spread FLOWS: sends flows from several hosts, until each queue had some of
# them: which queue a flow goes to depends on a key that is random.
spread() {
	local host got base
	received
	base=("${RECEIVED[@]}")
	for host in 2 3 4 8 16 32 64 128; do
		frames 640 60 0 ",\"flows\":$1"
		REQUEST=${REQUEST/10.0.0.2/10.0.0.$host}
		wire_try "$REQUEST" || return 1
		for got in '"forwarded": *640' '"reordered": *0' '"damaged": *0' '"duplicated": *0'; do
			[[ $ANSWER =~ $got ]] || {
				echo "not $got: $ANSWER" >&2
				return 1
			}
		done
		RECEIVED=("${base[@]}")
		used 5
		[ "$REPLY" -lt "$expected" ] || return 0
	done
	echo "after the last host only $REPLY of $expected queues were used" >&2
	return 1
}

listen addresses
# Fragments have no ports, so UDP is hashed without them, unless somebody asks.
received
all_forwarded "640 frames of 64 flows between two hosts" 640 60 0 ',"flows":64'
used 600
same "UDP between two hosts has one queue" 1 "$REPLY"
quiet addresses

listen ports
hashed() {
	ethtool -n "$P0" rx-flow-hash udp4 | grep -c 'L4 bytes'
}
same "ethtool -n: UDP is hashed without its ports" 0 "$(hashed)"
check "ethtool -N: with its ports" ethtool -N "$P0" rx-flow-hash udp4 sdfn
same "ethtool -n: with its ports" 2 "$(hashed)"
check "64 flows are spread over all queues, each in order" spread 64
received
earlier=("${RECEIVED[@]}")
statistic "$P0" rx_packets
total=$REPLY
all_forwarded "640 frames of one flow" 640
used 600
same "one flow has one queue" 1 "$REPLY"
statistic "$P0" rx_packets
sum=0
for ((queue = 0; queue < expected; queue++)); do
	sum=$((sum + RECEIVED[queue] - earlier[queue]))
done
# A frame that the stack sends by itself may come between.
if [ $((REPLY - total)) -ge 640 ] && [ $((REPLY - total - sum)) -le 20 ]; then
	ok "the counters of the queues add up"
else
	not_ok "the counters of the queues add up" "$sum of $((REPLY - total))"
fi
check "ethtool -N: what the card cannot do is refused" \
	sh -c "! ethtool -N $P0 rx-flow-hash tcp4 sd 2>/dev/null"
quiet ports

listen transmit
# Each CPU has a queue of its own to transmit, if the kernel can do that.
all_own() {
	local port cpu mask
	for port in "$P0" "$P1"; do
		for ((cpu = 0; cpu < expected; cpu++)); do
			mask=$(<"/sys/class/net/$port/queues/tx-$cpu/xps_cpus")
			[ $((16#$mask)) = $((1 << cpu)) ] || {
				echo "$port: CPUs $mask send by queue $cpu" >&2
				return 1
			}
		done
	done
}
by_own_queue() {
	local cpu
	for ((cpu = 0; cpu < expected; cpu++)); do
		counters "$P1" "tx_queue_${cpu}_packets"
		local before=$REPLY
		taskset -c "$cpu" python3 "$TESTS/flood.py" "$P1" 50 5 >/dev/null || return 1
		sent_by "$cpu" $((before + 50)) || return 1
	done
}
sent_by() {
	until_true 5 reaches "$@" || {
		echo "queue $1 has sent $REPLY, not $2" >&2
		return 1
	}
}
reaches() {
	counters "$P1" "tx_queue_$1_packets"
	[ "$REPLY" -ge "$2" ]
}
own=
if [ -s "/sys/class/net/$P1/queues/tx-0/xps_cpus" ] && [ "$(nproc)" = "$expected" ]; then
	own=yes
	check "each CPU has a queue of its own" all_own
	check "what a CPU sends goes by its own queue" by_own_queue
else
	skip "what a CPU sends goes by its own queue" "no XPS"
fi
quiet transmit

# Where interrupts all come to one CPU, threads let the queues be polled at the
# same time.
listen threads
threads() {
	local port cpu=0 pid
	for port in "$P0" "$P1"; do
		echo 1 >"/sys/class/net/$port/threaded" || return 1
	done
	for pid in $(pgrep "^napi/($P0|$P1)-"); do
		taskset -p -c $((cpu++ % expected)) "$pid" || return 1
	done
	[ "$cpu" -ge $((2 * expected)) ] || {
		echo "$cpu threads for $expected queues of two ports" >&2
		return 1
	}
}
check "a thread for each queue, on a CPU of its own" threads
check "the threads forward 64 flows, each in order" spread 64
# Fewer than a ring has descriptors: what finds none is dropped.
all_forwarded "the threads forward 400 frames" 400 60 0 ',"flows":64'
for port in "$P0" "$P1"; do
	echo 0 >"/sys/class/net/$port/threaded"
done
works "without threads"
quiet threads

listen channels
fewer_and_more() {
	local round count
	for ((round = 0; round < 3; round++)); do
		for count in 1 "$expected"; do
			ethtool -L "$P0" combined "$count" || return 1
			ethtool -L "$P1" combined "$count" || return 1
			[ "$(queues_of "$P0" rx) $(channels "$P1" 2)" = "$count $count" ] || return 1
			carriers "$P0" "$P1" || return 1
		done
	done
}
traffic_on
check "ethtool -L: one queue and all again, 3 times under traffic" fewer_and_more
traffic_off "number of queues"
[ -z "$own" ] || check "each CPU has a queue of its own again" all_own
check "one queue" ethtool -L "$P0" combined 1
check "forwarding with one queue" forwarding_on
settle
all_forwarded "64 flows by one queue" 640 60 0 ',"flows":64'
check "all queues" ethtool -L "$P0" combined "$expected"
if [ "$DRIVER" = rust ]; then
	# The C driver can have more queues than CPUs.
	same "ethtool -l: the maximum" "$expected" "$(channels "$P0" 1)"
	check "more than that are refused" \
		sh -c "! ethtool -L $P0 combined $((expected + 1)) 2>/dev/null"
fi
check "none is refused" sh -c "! ethtool -L $P0 combined 0 2>/dev/null"
works "after the number of queues changed"
quiet channels

listen updown
ip link set "$P0" down
ip link set "$P1" down
check "forwarding is set up again" forwarding_on
settle
same "the ports of UDP are still hashed" 2 "$(hashed)"
check "64 flows are still spread over all queues" spread 64
check "ethtool -N: without the ports" ethtool -N "$P0" rx-flow-hash udp4 sd
same "ethtool -n: without the ports" 0 "$(hashed)"
works "after down and up"
quiet updown
