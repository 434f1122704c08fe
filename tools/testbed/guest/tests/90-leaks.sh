#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# After everything else: nothing was leaked. Runs last.

export TEST=leaks TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

LEAKS=/sys/kernel/debug/kmemleak
if [ ! -w $LEAKS ]; then
	skip "memory leaks" "this kernel has no kmemleak (CONFIG=debug has)"
	exit 0
fi

listen leaks
begin
check "the driver can be unloaded" unload
# kmemleak believes an object lost only when it has not been seen for some
# seconds, and a stale pointer in a register or stack may hide one: look twice.
pause 6
echo scan >$LEAKS
pause 1
echo scan >$LEAKS
same "kmemleak finds nothing" "" "$(head -n 40 $LEAKS)"
check "the driver can be loaded again" load
check "both ports come back" find_ports
quiet leaks
