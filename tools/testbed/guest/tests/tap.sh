# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the files share variables
#
# TAP output, the time limit, and the search for kernel complaints.

tap_number=0
tap_failed=0

# What the kernel prints when something is wrong. One expression per line, so
# that each can be read; the list is long because a silent test is worthless.
COMPLAINTS='WARNING:
BUG:
Oops
kernel panic
KASAN:
UBSAN:
KFENCE:
lockdep
possible (circular|recursive) locking
inconsistent lock state
suspicious RCU usage
INFO: (task|rcu_|trying to register)
blocked for more than
self-detected stall
soft lockup
scheduling while atomic
sleeping function called
DMA-API:
ODEBUG:
ref_tracker:
refcount_t:
list_(add|del) corruption
Bad page
new suspected memory leaks
general protection fault
unable to handle
NETDEV WATCHDOG
page_pool.*stalled
unregister_netdevice: waiting
nobody cared
workqueue lockup
rust_kernel: panicked
WARN_ON
Object already free
Poison overwritten
stack-out-of-bounds'

# ok NAME / not_ok NAME WHY / skip NAME WHY: one line of TAP each.
ok() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number - $TEST: $1"
}

not_ok() {
	tap_number=$((tap_number + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_number - $TEST: $1 # ${2//$'\n'/; }"
}

skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number - $TEST: $1 # SKIP $2"
}

# verdict NAME WHY: passes if WHY is empty.
verdict() {
	if [ -z "$2" ]; then ok "$1"; else not_ok "$1" "$2"; fi
}

# check NAME COMMAND...: passes if the command does.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "'$*' failed: $(tail -n 3 <<<"$output")"
	fi
}

# same NAME EXPECTED GOT
same() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "expected '$2', got '$3'"; fi
}

# stop_if_failed WHAT: ends a test whose later checks would only repeat the failure.
stop_if_failed() {
	[ "$tap_failed" -eq 0 ] || exit 1
}

# listen NAME: begins a case. What the kernel says from here on is judged by
# quiet; the console keeps all of it.
listen() {
	dmesg -C
	echo "skbulk-test: $TEST: $1" >/dev/kmsg
}

# quiet NAME [EXCEPT]: passes if the kernel has not complained since listen.
# EXCEPT is an expression for lines that the case itself provokes.
quiet() {
	local found
	found=$(dmesg | LC_ALL=C grep -E -i -e "$COMPLAINTS")
	if [ -n "$found" ] && [ -n "${2:-}" ]; then
		found=$(grep -E -v -e "$2" <<<"$found")
	fi
	verdict "$1: no complaint of the kernel" "${found:0:600}"
}

# A pipe that nothing is ever written to: waiting on it needs no process, and
# processes are what is slow in this VM.
never=$(mktemp -u /tmp/never.XXXXXX)
mkfifo "$never" && exec 9<>"$never"
rm -f "$never"

# pause SECONDS
pause() {
	read -r -t "$1" -u 9
	return 0
}

# until_true SECONDS COMMAND...: polls; fails if the command still does.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		pause 0.1
	done
}

# guard ARGUMENTS...: runs the calling script again in a child with a time
# limit. A child that is stuck in the kernel cannot be killed; it is left
# behind and the test fails all the same.
guard() {
	[ -z "${GUARDED:-}" ] || { trap finish EXIT; return; }
	local limit=${TIME_LIMIT:-90} child
	# With job control the child leads a process group: all of it can be ended.
	set -m
	SECONDS=0
	GUARDED=1 bash "$0" "$@" &
	child=$!
	set +m
	while kill -0 "$child" 2>/dev/null; do
		if [ "$SECONDS" -ge "$limit" ]; then
			echo w >"${SYSRQ:-/proc/sysrq-trigger}"
			echo "not ok 999 - $TEST: ends within $limit s # it hangs; blocked tasks are in the kernel log"
			kill -9 -- "-$child" 2>/dev/null
			exit 1
		fi
		pause 0.5
	done
	wait "$child"
	exit $?
}

finish() {
	local code=$?
	at_end
	if [ "$tap_number" -eq 0 ] || { [ "$code" -ne 0 ] && [ "$tap_failed" -eq 0 ]; }; then
		not_ok "runs to its end" "the script stopped with exit code $code"
	fi
	echo "1..$tap_number"
	exit $((tap_failed != 0))
}

# A test that must clean up says so here; called once, however the test ends.
deferred=()
defer() {
	deferred=("$*" "${deferred[@]}")
}

at_end() {
	local command
	for command in "${deferred[@]}"; do
		eval "$command" >/dev/null 2>&1
	done
	deferred=()
}
