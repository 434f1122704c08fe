#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's own tests of queue disciplines and packet sockets, with each way
# to put packets in front of a qdisc. All come from the tree that was built.

export TEST=selftests TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

FILES="fifo pfifo_fast fq"
SELFTESTS=/mnt/source/tools/testing/selftests

if [ ! -d "$SELFTESTS" ]; then
	skip "the kernel's selftests" "the kernel's source is visible in User-Mode Linux only"
	exit 0
fi
if no_ways; then
	skip "the kernel's selftests" "this kernel has no CONFIG_NET_XMIT_LLIST_RUST"
	exit 0
fi

defer way C

prepare_tdc() {
	cp -r "$SELFTESTS/tc-testing" /tmp/tdc && cd /tmp/tdc || return 1
	insmod_if_module dummy || return 1
	cp "$TESTS/tdc_namespace.py" plugin-lib/nsPlugin.py || return 1
	cat >select.py <<-'END'
		"""Keep the cases of a file that need nothing but a namespace; print the others."""
		import json
		import sys

		with open(sys.argv[1]) as file:
		    cases = json.load(file)
		plain = [case for case in cases if case["plugins"]["requires"] in ("nsPlugin", ["nsPlugin"])]
		with open(sys.argv[1], "w") as file:
		    json.dump(plain, file)
		for case in cases:
		    if case not in plain:
		        print(case["id"], case["name"])
	END
	local file
	for file in $FILES; do
		python3 select.py "tc-tests/qdiscs/$file.json" >"$file.others" || return 1
	done
}

insmod_if_module() {
	local file
	file=$(find "$KERNEL_BUILD" -name "$1.ko") && { [ -z "$file" ] || insmod "$file"; }
}

# tdc WAY FILE: a line for each case
tdc() {
	local line cases=0 name
	(cd /tmp/tdc && ./tdc.py -f "tc-tests/qdiscs/$2.json" --format tap --outfile out.tap) \
		>/tmp/tdc/log 2>&1
	while read -r line; do
		case $line in
		ok\ * | not\ ok\ *) ;;
		*) continue ;;
		esac
		cases=$((cases + 1))
		name="$1: tdc: ${line#*ok }"
		name=${name%%#*}
		case $line in
		*"# skipped"* | *"# SKIP"*) skip "$name" "tdc: ${line#*#}" ;;
		ok\ *) ok "$name" ;;
		*) not_ok "$name" "see /tmp/tdc/out.tap: $(tail -n 3 /tmp/tdc/log)" ;;
		esac
	done </tmp/tdc/out.tap
	[ "$cases" -gt 0 ] || not_ok "$1: tdc: $2" "no case was run: $(tail -n 3 /tmp/tdc/log)"
	rm -f /tmp/tdc/out.tap
	while read -r line; do
		skip "$1: tdc: $line" "it needs scapy"
	done <"/tmp/tdc/$2.others"
}

PROGRAMS="psock_snd psock_tpacket txring_overwrite udpgso"

compile() {
	local program compiler
	# Debian's has no path of its own in the guest.
	compiler=$(command -v clang || printf '%s\n' /usr/lib/llvm-*/bin/clang | tail -n 1)
	cp -r "$SELFTESTS/net" /tmp/net && cd /tmp/net || return 1
	for program in $PROGRAMS; do
		"$compiler" -O2 -w -D_GNU_SOURCE= -I"$SELFTESTS" -o "$program" "$program.c" -lpthread ||
			return 1
	done
}

in_net() {
	cd /tmp/net && "$@"
}

listen prepare
check "tdc is ready" prepare_tdc
check "the programs of net can be compiled" compile
stop_if_failed
quiet prepare

for how in C Rust batches; do
	listen "$how"
	way $how
	for file in $FILES; do
		tdc $how $file
	done
	check "$how: packet sockets send: psock_snd.sh" in_net ./psock_snd.sh
	for program in psock_tpacket txring_overwrite; do
		check "$how: packet sockets: $program" in_net ./in_netns.sh ./$program
	done
	check "$how: segments of UDP: udpgso" in_net ./in_netns.sh sh -c \
		"ip addr add dev lo 10.0.0.1/32 && ip link set dev lo mtu 1500 && ./udpgso -4 -C"
	quiet "$how"
done
