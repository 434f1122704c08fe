# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the files share variables
#
# What the end-to-end tests share. A test sets TEST, its name, and TIME_LIMIT in
# seconds, then sources this file. From there on it runs in a child that is
# ended when the time is over, prints one TAP line per check and fails if any
# of them does.
#
# The init script gives DRIVER (rust or c) and the commands `wire`,
# `load-driver` and `unload-driver`.

set -u

TESTS=$(dirname "${BASH_SOURCE[0]}")

# shellcheck source=tap.sh
. "$TESTS/tap.sh"
# shellcheck source=ports.sh
. "$TESTS/ports.sh"
# shellcheck source=traffic.sh
. "$TESTS/traffic.sh"
# shellcheck source=qdiscs.sh
. "$TESTS/qdiscs.sh"

# natively: in User-Mode Linux, where a test with many senders takes no time. With
# KERNEL_ARGS=EMULATED=1 make run lets it run elsewhere, too: with more CPUs, or
# with KASAN, and minutes of time.
natively() {
	[ -n "${EMULATED:-}" ] || grep -q "User Mode Linux" /proc/cpuinfo
}

[ -z "${EMULATED:-}" ] || TIME_LIMIT=$((TIME_LIMIT * 8))
guard "$@"
