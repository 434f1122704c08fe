#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The queueing discipline alf on a port: each datagram that it takes arrives once
# and in the order of its sender, and what it drops is counted.

export TEST=sch-alf TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

if ! natively; then
	skip "the queueing discipline alf" "too slow on this machine (MACHINE=uml is not)"
	exit 0
fi

begin
defer cable_off
check "two namespaces reach each other" cable_on
stop_if_failed

left() { ip netns exec left "$@"; }
right() { ip netns exec right "$@"; }
tc_left() { tc -n left "$@"; }
options() { left python3 "$TESTS/qdisc_options.py" "$@"; }

check "they know each other" cable_known
no_ways || defer way C
# What is left to somebody is dropped nowhere but in the queue.
setting qdisc_max_burst 100000

module=$(find /mnt/build/net/sched -name sch_alf.ko)

# kind: of the root qdisc, into REPLY
kind() { REPLY=$(tc_left qdisc show dev "$P0" root | awk 'NR == 1 { print $2 }'); }
is_alf() { kind && [ "$REPLY" = alf ]; }
alf() { tc_left qdisc replace dev "$P0" root alf && is_alf; }

# counted NAME: sent or dropped packets of the root qdisc as tc has it, into REPLY
counted() {
	REPLY=$(tc_left -s qdisc show dev "$P0" root | sed -n "s/.*Sent [0-9]* bytes \([0-9]*\) pkt (dropped \([0-9]*\),.*/\1 \2/p")
	case $1 in
	sent) REPLY=${REPLY% *} ;;
	dropped) REPLY=${REPLY#* } ;;
	esac
}

# of_device: packets that came while no queueing discipline was in use, into REPLY
of_device() {
	REPLY=$(left cat "/sys/class/net/$P0/statistics/tx_dropped")
}

# missed: packets that have left one port and were not received by the other one, or
# for which their receiver had no room, into REPLY
# shellcheck disable=SC2016 # for awk
missed() {
	local gone come receiver
	gone=$(left cat "/sys/class/net/$P0/statistics/tx_packets")
	come=$(right cat "/sys/class/net/$P1/statistics/rx_packets")
	receiver=$(right awk '$1 == "Udp:" { errors = $4 } END { print errors }' /proc/net/snmp)
	REPLY=$((gone - come + receiver))
}

# accounted LOST: what was taken has arrived, apart from so many that were dropped,
# and those that the other side has missed, as it counts them.
accounted() {
	missed
	[ "$received" -gt 0 ] &&
		[ $((received + $1 + REPLY - missed_before)) = "$taken" ]
}
# shellcheck disable=SC2016 # for awk
all_accounted() {
	until_true 5 accounted "$1" && return
	missed
	echo "$received of $taken received, $1 dropped, $((REPLY - missed_before)) missed by the other side;" \
		"in all, $(left cat "/sys/class/net/$P0/statistics/tx_packets") sent," \
		"$(right cat "/sys/class/net/$P1/statistics/rx_packets") received," \
		"$(right awk '$1 == "Udp:"' /proc/net/snmp | tail -n 1)"
	return 1
}

# senders_on COUNT SECONDS: four of them on both CPUs; their and the receiver's sums
# go to taken, refused, away, received, disordered and twice.
senders_on() {
	local sender line
	exec {output}< <(exec ip netns exec right python3 "$TESTS/datagrams.py" receive 10.9.0.2 7000 4 2>&1)
	receiver=$!
	read -r -t 20 -u "$output" line
	[ "$line" = ready ] || echo "# the receiver says: $line"
	missed
	missed_before=$REPLY
	: >/tmp/senders.$$
	sending=()
	for sender in 0 1 2 3; do
		ip netns exec left taskset -c $((sender % 2)) python3 "$TESTS/datagrams.py" \
			send 10.9.0.2 $((7000 + sender)) "$1" "$2" >>/tmp/senders.$$ 2>&1 &
		sending+=($!)
	done
}
senders_off() {
	wait "${sending[@]}"
	kill -TERM "$receiver"
	read -r -t 60 -u "$output" _ received _ disordered _ twice
	exec {output}<&-
	read -r taken refused away < <(awk '$1 == "taken" { lines++; a += $2; b += $4; c += $6 }
		END { if (lines != 4) a = "incomplete"; print a, b + 0, c + 0 }' /tmp/senders.$$)
	echo "# $1: $taken taken, $refused refused, $away while away; $received received, $disordered disordered, $twice twice"
}

listen load
check "the module is loaded" insmod "$module"
check "tc puts alf on the port" alf
stop_if_failed
same "its limit is the length of the device's queue, rounded up" 1024 "$(options limit "$P0")"
check "two namespaces reach each other through it" ping_across
quiet load

listen options
# wrong NAME OPTIONS MESSAGE
wrong() {
	local said
	said=$(options replace "$P0" alf "$2" 2>&1)
	same "refused with a message: $1" "Invalid argument: $3" "$said"
}
wrong_everywhere() {
	wrong "limit 0, $1" 00000000 "limit 0: no packet could wait"
	wrong "too large a limit, $1" 01001000 "limit 1048577: must be at most 1048576"
	wrong "short options, $1" 0400 "options have 2 bytes, and must have 4"
	wrong "long options, $1" 0400000000000000 "options have 8 bytes, and must have 4"
}
wrong_everywhere "when it is changed"
same "what was refused has changed nothing" 1024 "$(options limit "$P0")"
check "another qdisc takes its place" tc_left qdisc replace dev "$P0" root pfifo limit 1000
wrong_everywhere "when it is made"
same "what was refused has made none" pfifo "$(kind; echo "$REPLY")"
check "it is made with a limit" options replace "$P0" alf limit 100
same "the limit is rounded up" 128 "$(options limit "$P0")"
check "the largest limit" options replace "$P0" alf limit 1048576
same "the largest limit is as it was given" 1048576 "$(options limit "$P0")"
quiet options

changes() {
	local round
	for ((round = 0; round < 20; round++)); do
		options replace "$P0" alf limit 2 && options replace "$P0" alf limit 4000 || return 1
	done
}

lengths() {
	local length
	for length in 10 300 1000 5 5000 1000; do
		ip -n left link set "$P0" txqueuelen "$length" || return 1
		pause 0.2
	done
}

replaced() {
	local round
	for ((round = 0; round < 25; round++)); do
		tc_left qdisc replace dev "$P0" root pfifo && alf || return 1
	done
}

# What is known of neighbours goes with the device. Until the neighbour is known
# again there is no route, so that nothing waits for its address.
downs() {
	local round
	for ((round = 0; round < 5; round++)); do
		ip -n left link set "$P0" down && pause 0.1 &&
			ip -n left addr del 10.9.0.1/24 dev "$P0" &&
			ip -n left link set "$P0" up || return 1
		until_true 10 left grep -q up "/sys/class/net/$P0/operstate"
		cable_known && ip -n left addr add 10.9.0.1/24 dev "$P0" && pause 0.3 || return 1
	done
}

in_order() {
	listen order
	check "room for all" options replace "$P0" alf limit 65536
	counted dropped
	before=$REPLY
	senders_on 5000 60
	senders_off order
	same "each datagram is taken" 20000 "$taken"
	check "each of them arrives" all_accounted 0
	same "once, and in the order of its sender" "0 disordered, 0 twice" \
		"$disordered disordered, $twice twice"
	counted dropped
	same "nothing is counted as dropped" "$before" "$REPLY"
	counted sent
	if [ "$REPLY" -ge 20000 ]; then
		ok "all are counted as sent"
	else
		not_ok "all are counted as sent" "tc says $REPLY"
	fi
	same "nothing is left behind" "backlog 0b 0p" \
		"$(tc_left -s qdisc show dev "$P0" root | grep -o 'backlog [0-9]*b [0-9]*p')"
	quiet order
}

# when_full HOW: packets go in
when_full() {
	listen full
	check "hardly any room" options replace "$P0" alf limit 4
	check "the card gets few at once" \
		left sh -c "for limit in /sys/class/net/$P0/queues/tx-*/byte_queue_limits/limit_max; do echo 200 >\$limit; done"
	counted dropped
	before=$REPLY
	senders_on 5000 60
	senders_off full
	counted dropped
	dropped=$((REPLY - before))
	if [ "$dropped" -gt 0 ]; then
		ok "the queue has been full"
	else
		not_ok "the queue has been full" "all of $taken were taken"
	fi
	check "each datagram that was taken arrives" all_accounted $((dropped - refused))
	same "once, and in the order of its sender with a full queue" "0 disordered, 0 twice" \
		"$disordered disordered, $twice twice"
	if [ "$1" = C ]; then
		same "the others are counted as dropped" "$refused" "$dropped"
	elif [ "$refused" -le "$dropped" ]; then
		# Whoever leaves a packet to somebody else is not told of its end.
		ok "the others are counted as dropped"
	else
		not_ok "the others are counted as dropped" "$refused refused, $dropped dropped"
	fi
	check "the card gets more again" \
		left sh -c "for limit in /sys/class/net/$P0/queues/tx-*/byte_queue_limits/limit_max; do echo max >\$limit; done"
	quiet full
}

when_changed() {
	listen changes
	counted dropped
	before=$REPLY
	of_device
	before_device=$REPLY
	senders_on 1000000 4
	check "40 times another limit under load" changes
	senders_off changes
	same "in order with other limits" "0 disordered, 0 twice" "$disordered disordered, $twice twice"
	# No sender is told of those that were in the queue when it was made smaller, or
	# came while it was not in use.
	counted dropped
	smaller=$((REPLY - before - refused))
	of_device
	unused=$((REPLY - before_device))
	echo "# $smaller did not fit any more, $unused came while the queue was not in use"
	check "each that is lost is counted as dropped" all_accounted $((smaller + unused))
	tc_left qdisc replace dev "$P0" root pfifo && alf
	senders_on 1000000 3
	check "other lengths of the device's queue under load" lengths
	senders_off lengths
	same "in order with other lengths" "0 disordered, 0 twice" "$disordered disordered, $twice twice"
	same "the limit follows the device" 1024 "$(options limit "$P0")"
	if ip -n left link set "$P0" txqueuelen 0 2>/dev/null; then
		not_ok "a device without a queue is refused" "it was accepted"
	else
		ok "a device without a queue is refused"
	fi
	quiet changes
}

when_replaced() {
	listen replaced
	senders_on 1000000 6
	check "50 times replaced under load" replaced
	senders_off replaced
	same "in order with what replaces it" "0 disordered, 0 twice" \
		"$disordered disordered, $twice twice"
	if [ "$received" -gt 0 ] && [ "$received" -le "$taken" ]; then
		ok "datagrams arrive while it is replaced"
	else
		not_ok "datagrams arrive while it is replaced" "$received of $taken"
	fi
	senders_on 1000000 8
	check "5 times down and up under load" downs
	senders_off downs
	same "in order after going down" "0 disordered, 0 twice" "$disordered disordered, $twice twice"
	same "it is still alf" alf "$(kind; echo "$REPLY")"
	check "two namespaces reach each other after that" until_true 10 ping_across
	quiet replaced
}

# Senders put packets in by themselves, or leave them to each other.
for how in C batches; do
	if no_ways && [ $how != C ]; then
		skip "with $how" "this kernel knows only one way"
		continue
	fi
	no_ways || check "the way packets go in: $how" way $how
	in_order
	when_full $how
	when_changed
	when_replaced
done

listen unload
if rmmod sch_alf 2>/dev/null; then
	not_ok "the module stays while it is used" "it was removed"
else
	ok "the module stays while it is used"
fi
senders_on 1000000 2
check "the qdisc is removed under load" tc_left qdisc del dev "$P0" root
senders_off unload
check "the module goes when it is not used" rmmod sch_alf
# Without a modprobe to ask, so that the kernel cannot fetch the module back.
modprobe_path=$(</proc/sys/kernel/modprobe)
echo >/proc/sys/kernel/modprobe
check "tc knows no alf any more" sh -c "! tc -n left qdisc replace dev $P0 root alf 2>/dev/null"
echo "$modprobe_path" >/proc/sys/kernel/modprobe
check "the module is loaded again" insmod "$module"
check "tc puts alf on the port again" alf
check "two namespaces reach each other through it again" ping_across
tc_left qdisc del dev "$P0" root
check "the module goes again" rmmod sch_alf
reloaded() {
	local round
	for ((round = 0; round < 100; round++)); do
		insmod "$module" && alf && pause 0.02 && tc_left qdisc del dev "$P0" root &&
			rmmod sch_alf || return 1
	done
}
senders_on 100000000 1000
check "100 times loaded, used and removed under load" reloaded
all_sending() {
	local sender
	for sender in "${sending[@]}"; do
		kill -0 "$sender" || return 1
	done
}
check "the senders are still there" all_sending
kill "${sending[@]}"
wait "${sending[@]}" 2>/dev/null
kill -TERM "$receiver"
exec {output}<&-
quiet unload
