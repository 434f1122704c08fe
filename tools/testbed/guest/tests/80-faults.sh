#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory runs out: at probe, at open, and while packets fly.

export TEST=faults TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

FAULTS=/sys/kernel/debug/failslab
if [ ! -d $FAULTS ] || [ ! -e /proc/thread-self/fail-nth ]; then
	skip "failing allocations" "this kernel has no fault injection (CONFIG=debug has)"
	exit 0
fi

# The checkers of DMA mappings, of references and of timers give up for good, or
# count no longer, when they cannot get memory themselves, wherever they are hit:
# so this test runs after all that need them. The host reads the next line.
echo "skbulk: provokes checker out of memory" >/dev/kmsg
PROVOKED='cacheline tracking ENOMEM, dma-debug disabled'
PROVOKED+='|ODEBUG: Out of memory|ref_tracker: memory allocation failure'

begin
listen open
ip link set "$P0" down
ip link set "$P1" down
# fault_nth NAME ARGUMENTS...: what it found out goes into the name of the check.
fault_nth() {
	local name=$1 output
	shift
	if output=$(python3 "$TESTS/fault_nth.py" "$@" 2>&1); then
		ok "$name ($output)"
	else
		not_ok "$name" "$(tail -n 1 <<<"$output")"
	fi
}
fault_nth "each allocation of open fails in turn" --seconds 40 up "$P0"
works "after failures of open"
quiet "failing open" "$PROVOKED"

listen probe
ip link set "$P0" down
echo "${PCI_PORT[0]}" >"/sys/bus/pci/drivers/$MODULE/unbind"
fault_nth "each allocation of probe fails in turn" --seconds 60 --dense 60 \
	bind "${PCI_PORT[0]}" "$MODULE"
check "the device can still be bound" sh -c \
	"echo ${PCI_PORT[0]} >/sys/bus/pci/drivers/$MODULE/bind"
find_ports
works "after failures of probe"
quiet "failing probe" "$PROVOKED"

# In the data path only allocations that must not sleep fail: of SKBs, by their
# slab caches, and of pages. A process may need such a page, too, so between
# switching on and off nothing here starts one or opens a file: the knobs and
# the wire are open, the requests are ready.
listen data
KNOBS=/sys/kernel/debug
for kind in failslab fail_page_alloc; do
	echo Y >$KNOBS/$kind/ignore-gfp-wait
	echo 0 >$KNOBS/$kind/verbose
	echo -1 >$KNOBS/$kind/times
done
echo 0 >$KNOBS/fail_page_alloc/min-order
echo Y >$KNOBS/failslab/cache-filter
caches=0
for cache in /sys/kernel/slab/skbuff_*/failslab; do
	echo 1 >"$cache" && caches=$((caches + 1))
done 2>/dev/null
if [ "$caches" -gt 0 ]; then
	ok "allocations of SKBs can be made to fail"
else
	not_ok "allocations of SKBs can be made to fail" "no /sys/kernel/slab/skbuff_*/failslab can be set"
fi
exec {slab_knob}>$KNOBS/failslab/probability {page_knob}>$KNOBS/fail_page_alloc/probability
# fail_in PERCENT: of the allocations
fail_in() {
	printf '%s' "$1" >&"$slab_knob"
	printf '%s' "$1" >&"$page_knob"
}
defer fail_in 0

# failing NAME PERCENT COUNT SIZE: frames while allocations fail; what comes
# out must be right.
failing() {
	local what why=''
	TIMEOUT_MS=20000 frames "$3" "$4"
	fail_in "$2"
	wire_try "$REQUEST"
	fail_in 0
	for what in duplicated damaged; do
		answer $what
		[ "$REPLY" = 0 ] || why+="$REPLY frames $what; "
	done
	answer sent
	[ "${REPLY:-0}" -gt 0 ] || why+="nothing was sent; "
	answer forwarded
	verdict "$1: what comes out is right ($REPLY of $3)" "${why:+$why$ANSWER}"
	settle
}
check "forwarding is set up" forwarding_on
failing "every tenth allocation fails, small frames" 10 2000 60
failing "every tenth allocation fails, large frames" 10 300 1514
works "after failures in the data path" 2000
# What has been sent is used again, so that nothing need be allocated.
failing "every allocation fails" 100 2000 60
works "after all allocations failed" 2000

# Frames that a socket holds take the buffers with them: without new pages the
# ring runs empty, no frame can come any more, and no interrupt tells of one. The
# driver must go on by itself as soon as there is memory.
no_buffer() {
	ethtool -S "$P0" | awk '$1 == "rx_no_buffer:" { print $2 }'
}
# Only the page pool gets no pages: SKBs must go on, or the buffers are free again.
read -r first last < <(sort /proc/kallsyms |
	awk '$3 ~ /^(__)?page_pool_alloc/ { first = first ? first : $1; inside = 1; next }
		inside { last = $1; inside = 0 } END { print "0x" first, "0x" last }')
echo "$first" >$KNOBS/fail_page_alloc/require-start
echo "$last" >$KNOBS/fail_page_alloc/require-end
before=$(no_buffer)
exec {held}< <(exec python3 "$TESTS/hold.py" "$P0")
holder=$!
defer kill "$holder"
read -r -t 20 -u "$held" REPLY
same "a socket holds what is received" holds "$REPLY"
TIMEOUT_MS=20000 frames 4000
printf 100 >&"$page_knob"
wire_try "$REQUEST"
printf 0 >&"$page_knob"
kill "$holder"
wait "$holder"
after=$(no_buffer)
answer forwarded
verdict "the receive ring ran empty ($((after - before)) times no buffer, $REPLY of 4000 came out)" \
	"$([ "$after" -gt "$before" ] && [ "${REPLY:-4000}" -lt 2000 ] ||
		echo "$before times no buffer before, $after after; $ANSWER")"
works "after the receive ring ran empty" 2000
quiet "failing data path" "$PROVOKED"
