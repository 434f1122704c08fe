# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the files share variables
#
# Frames: through the guest from wire to wire, or between two network
# namespaces over a cable.

PEER0=02:00:00:00:00:02
PEER1=02:00:00:00:01:02

# wire_open: takes one of the ports to the model for this test, so that a
# request costs no process. The others stay for the wire command.
wire_open() {
	local ports=(/dev/virtio-ports/org.skbulk.wire*)
	local port=${ports[-1]}
	exec 8>"/run/${port##*/}.lock" && flock 8 && exec 7<>"$port"
}

# wire_try JSON: gives a command to the model, the answer goes to ANSWER.
wire_try() {
	printf '%s\n' "$1" >&7
	read -r -t 200 -u 7 ANSWER || ANSWER="no answer from the model"
	[[ $ANSWER =~ \"ok\":\ *true ]]
}

# wires 0 and 1 end at the model, both links are up, counters are zero
wire_bare() {
	local port
	for port in 0 1; do
		wire_try "{\"cmd\":\"wire\",\"port\":$port,\"kind\":\"sink\"}"
		wire_try "{\"cmd\":\"link\",\"port\":$port,\"up\":true}"
	done
}

# answer NAME: a number (or word) out of the last answer, into REPLY.
answer() {
	[[ $ANSWER =~ \"$1\":\ *\"?([A-Za-z0-9_.-]+) ]]
	REPLY=${BASH_REMATCH[1]:-}
}

# forwarding_on: addresses, routes and neighbours for 10.0.0.2 -> 10.0.1.2 and back.
forwarding_on() {
	echo 1 >/proc/sys/net/ipv4/ip_forward
	ip -batch - <<-END && carriers "$P0" "$P1"
		addr replace 10.0.0.1/24 dev $P0
		addr replace 10.0.1.1/24 dev $P1
		link set $P0 up
		link set $P1 up
		neigh replace 10.0.0.2 lladdr $PEER0 dev $P0 nud permanent
		neigh replace 10.0.1.2 lladdr $PEER1 dev $P1 nud permanent
	END
}

# frames COUNT [SIZE [FROM [MORE]]]: the request that sends frames through the
# guest and checks what comes out, into REQUEST. MORE is further JSON, e.g.
# ',"flows":4'.
frames() {
	local count=$1 size=${2:-60} from=${3:-0} more=${4:-} to in out peer_in peer_out
	to=$((1 - from))
	if [ "$from" = 0 ]; then
		in=$P0 out=$P1 peer_in=$PEER0 peer_out=$PEER1
	else
		in=$P1 out=$P0 peer_in=$PEER1 peer_out=$PEER0
	fi
	mac_of "$in"
	in=$REPLY
	mac_of "$out"
	out=$REPLY
	printf -v REQUEST '{"cmd":"generate","from":%d,"to":%d,"count":%d,"size":%d,%s,%s,%s}' \
		"$from" "$to" "$count" "$size" \
		"\"src_mac\":\"$peer_in\",\"dst_mac\":\"$in\",\"expect_src_mac\":\"$out\"" \
		"\"expect_dst_mac\":\"$peer_out\",\"src_ip\":\"10.0.$from.2\",\"dst_ip\":\"10.0.$to.2\"" \
		"\"window\":128,\"drain_ms\":1000,\"timeout_ms\":${TIMEOUT_MS:-60000}$more"
}

# all_forwarded NAME COUNT [SIZE [FROM [MORE]]]: sends frames; passes if each
# came out once, whole and in order.
all_forwarded() {
	local name=$1 what why='' sent
	shift
	frames "$@"
	if wire_try "$REQUEST"; then
		answer sent
		sent=$REPLY
		[ "$sent" = "$1" ] || why="only $sent were sent; "
		answer forwarded
		[ "$REPLY" = "$1" ] || why+="$REPLY came out; "
		for what in duplicated damaged reordered; do
			answer $what
			[ "$REPLY" = 0 ] || why+="$REPLY $what; "
		done
	else
		why="the model refused: "
	fi
	verdict "$name" "${why:+$why$ANSWER}"
}

# settle: waits until nothing leaves the guest any more. What a slow guest has
# queued from one run would look like damage to the next one.
settle() {
	local last='' end=$((SECONDS + 20))
	while [ "$SECONDS" -lt "$end" ]; do
		statistic "$P0" tx_packets
		set -- "$REPLY"
		statistic "$P1" tx_packets
		[ "$1 $REPLY" != "$last" ] || return 0
		last="$1 $REPLY"
		pause 0.7
	done
}

# works NAME [COUNT]: the driver still forwards, every frame.
works() {
	local why=''
	if find_ports && why=$(forwarding_on 2>&1); then
		settle
		all_forwarded "$1: forwards without loss" "${2:-500}"
	else
		not_ok "$1: forwards without loss" "${why:-there are no interfaces}"
	fi
}

# some_frames COUNT [SIZE]: sends frames in a situation where they may be lost.
some_frames() {
	TIMEOUT_MS=4000 frames "$@"
	wire_try "$REQUEST"
}

# traffic_on: bursts of frames in the background, through whatever there is,
# until traffic_off.
traffic_on() {
	# No timeout ends a burst before its frames are accounted for.
	frames 2000
	TRAFFIC_FILE=/tmp/traffic.$$
	: >"$TRAFFIC_FILE"
	: >"$TRAFFIC_FILE.on"
	defer rm -f "$TRAFFIC_FILE.on"
	while [ -e "$TRAFFIC_FILE.on" ]; do
		wire "$REQUEST" >>"$TRAFFIC_FILE" 2>&1
	done &
	TRAFFIC=$!
}

# forwarded_some: a burst of the traffic came through, at least in part.
forwarded_some() { grep -Eq '"forwarded": *[1-9]' "$TRAFFIC_FILE"; }

# traffic_off NAME: ends the traffic; passes if nothing that came out was
# wrong, and some did come out. A burst is lost as a whole if the interfaces were
# away for all of it, so there is one more until the first comes through.
traffic_off() {
	local what why='' forwarded=0
	until_true 30 forwarded_some
	rm -f "$TRAFFIC_FILE.on"
	wait "$TRAFFIC"
	while read -r ANSWER; do
		answer forwarded
		forwarded=$((forwarded + ${REPLY:-0}))
		for what in duplicated damaged; do
			answer $what
			[ "$REPLY" = 0 ] || why+="$what frames: $ANSWER; "
		done
	done <"$TRAFFIC_FILE"
	[ "$forwarded" -gt 0 ] || why+="nothing came out at all: $ANSWER"
	verdict "$1: the frames that came out are right" "$why"
}

# pages_back: what one CPU has freed for another one goes back to where it came
# from. Such an SKB, and the page of the driver's pool that it holds, waits until
# the CPU that allocated it receives something. If the interface leaves a
# namespace that goes away, and nothing is received for a minute, the kernel
# reports the pool as stalled.
pages_back() {
	local cpu
	ip link set lo up
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		# One that is offline has given everything back.
		taskset -c "${cpu##*cpu}" ping -q -c 1 -W 1 127.0.0.1 >/dev/null 2>&1
	done
}

# cable_on: the ports are wired to each other, each in a namespace of its own.
cable_on() {
	wire_try '{"cmd":"wire","port":0,"kind":"cable","peer":1}' || {
		echo "no cable: $ANSWER" >&2
		return 1
	}
	ip netns add left && ip netns add right || return 1
	cable_in
}

# cable_in: puts the ports (back) into their namespaces.
cable_in() {
	find_ports || return 1
	ip -batch - <<-END || return 1
		link set $P0 netns left
		link set $P1 netns right
	END
	ip -n left -batch - <<-END || return 1
		addr add 10.9.0.1/24 dev $P0
		link set lo up
		link set $P0 up
	END
	ip -n right -batch - <<-END || return 1
		addr add 10.9.0.2/24 dev $P1
		link set lo up
		link set $P1 up
	END
	until_true 30 ping_across
}

ping_across() {
	ip netns exec left ping -q -c 1 -W 1 10.9.0.2
}

# cable_known: each side knows the other's address and does not ask for it: no packet
# waits for it, and the queues have nothing in them but what a test sends.
cable_known() {
	neighbour left "$P0" 10.9.0.2 right "$P1" && neighbour right "$P1" 10.9.0.1 left "$P0"
}

# neighbour NETNS DEVICE ADDRESS NETNS DEVICE: who has the address, for good
neighbour() {
	local mac
	mac=$(ip netns exec "$4" cat "/sys/class/net/$5/address") &&
		ip -n "$1" neigh replace "$3" lladdr "$mac" dev "$2" nud permanent
}

# cable_off: gives the ports back. An interface leaves its namespace by itself
# when that goes, but not at once.
cable_off() {
	ip netns del left
	ip netns del right
	until_true 20 find_netdevs
	wire_bare
	pages_back
}
