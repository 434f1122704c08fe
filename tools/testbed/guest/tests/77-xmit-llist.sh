#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Many senders in front of one qdisc: the kernel's list in C, the combiner in
# Rust, and with batches. Nothing gets lost, comes twice or overtakes.

export TEST=xmit-llist TIME_LIMIT=300
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

if ! natively; then
	skip "many senders" "takes too long where the machine is emulated"
	exit 0
fi
if no_ways; then
	skip "many senders" "this kernel has no CONFIG_NET_XMIT_LLIST_RUST"
	exit 0
fi

defer way C

# Nothing is dropped but where it is counted.
setting netdev_max_backlog 100000
setting qdisc_max_burst 100000

# Without ARP: what waits for an answer, after the device went up, is overtaken by
# what comes after the answer, whatever is in front of the qdisc. Such a device sends
# to its own address, so that is the one of the other device, too.
pair_on() {
	local mac=02:00:00:00:08:01
	ip netns add source && ip netns add target || return 1
	ip -n source link add v0 address $mac type veth peer name v1 address $mac netns target ||
		return 1
	ip -n source -batch - <<-END || return 1
		addr add 10.8.0.1/24 dev v0
		link set lo up
		link set v0 arp off
		link set v0 up
	END
	ip -n target -batch - <<-END || return 1
		addr add 10.8.0.2/24 dev v1
		link set lo up
		link set v1 arp off
		link set v1 up
	END
	# What two CPUs send, two CPUs would receive, in any order.
	ip netns exec target sh -c "echo 1 >/sys/class/net/v1/queues/rx-0/rps_cpus"
}

pair_off() {
	ip netns del source
	ip netns del target
}

# qdisc KIND...: in front of v0
qdisc() {
	tc -n source qdisc replace dev v0 root "$@"
}

senders() {
	python3 "$TESTS/senders.py" source target 10.8.0.2 "$@"
}

# dropped: by the qdisc, into REPLY
dropped() {
	[[ $(tc -n source -s qdisc show dev v0 root) =~ dropped\ ([0-9]+) ]]
	REPLY=${BASH_REMATCH[1]:-}
}

listen veth
defer pair_off
check "two namespaces are connected" pair_on
stop_if_failed

for how in C Rust batches; do
	check "$how: can be chosen" way $how
	for kind in "pfifo limit 20000" "bfifo limit 20000000" "fq limit 20000 flow_limit 20000"; do
		# shellcheck disable=SC2086 # several words
		qdisc $kind
		check "$how: ${kind%% *}: 6 senders, each datagram once and in order" \
			senders --count 2000 --all
	done
	# Some find no room: the qdisc has counted each of them.
	for kind in "pfifo limit 2" "bfifo limit 400" "fq limit 20000 flow_limit 2"; do
		# shellcheck disable=SC2086 # several words
		qdisc $kind
		why=$(senders --count 2000) || why="wrong: $why"
		dropped
		if [[ $why =~ ^sent\ ([0-9]+)\ received\ ([0-9]+)$ ]]; then
			same "$how: $kind: what did not come was counted ($REPLY)" \
				"${BASH_REMATCH[1]}" "$((BASH_REMATCH[2] + REPLY))"
		else
			not_ok "$how: $kind: what did not come was counted" "$why"
		fi
	done
	qdisc pfifo limit 20000
	check "$how: a sender is killed half-way" senders --count 4000 --kill --all
done
quiet veth

# under_load NAME COMMAND [ARGUMENT...]: while datagrams are sent, with the
# arguments for the senders.
under_load() {
	local name=$1 command=$2 load answer=/tmp/senders.$$
	shift 2
	senders --seconds 3 "$@" >"$answer" 2>&1 &
	load=$!
	pause 0.5
	check "$name" "$command"
	if wait "$load"; then
		ok "$name: what came is right ($(<"$answer"))"
	else
		not_ok "$name: what came is right" "$(tail -n 2 "$answer")"
	fi
	rm -f "$answer"
	way Rust
	qdisc pfifo limit 20000
	check "$name: all works afterwards" senders --count 500 --all
}

switch_50() {
	local round ways=(C Rust batches)
	for ((round = 0; round < 50; round++)); do
		way "${ways[round % 3]}" && pause 0.03 || return 1
	done
}

replace_100() {
	local round kinds=("pfifo limit 20000" "fq limit 20000 flow_limit 20000")
	for ((round = 0; round < 100; round++)); do
		# shellcheck disable=SC2086 # several words
		qdisc ${kinds[round % 2]} || return 1
	done
}

down_up_20() {
	local round
	for ((round = 0; round < 20; round++)); do
		ip -n source link set v0 down && ip -n source link set v0 up && pause 0.05 || return 1
	done
}

listen load
under_load "switched 50 times" switch_50 --all
for how in Rust batches; do
	way $how
	under_load "$how: qdisc replaced 100 times" replace_100
	way $how
	under_load "$how: down and up 20 times" down_up_20
done
quiet load

# The driver, whose queue is stopped and woken.
begin
listen cable
defer cable_off
check "the ports reach each other" cable_on
stop_if_failed
check "they know each other" cable_known
over_cable() {
	python3 "$TESTS/senders.py" left right 10.9.0.2 "$@"
}
for how in C Rust batches; do
	way $how
	for kind in "pfifo limit 20000" "fq limit 20000 flow_limit 20000"; do
		# shellcheck disable=SC2086 # several words
		tc -n left qdisc replace dev "$P0" root $kind
		# Together fewer on their way than the other port has descriptors.
		check "$how: ${kind%% *}: 6 senders through the card" \
			over_cable --count 2000 --ahead 48 --all
	done
done
quiet cable
