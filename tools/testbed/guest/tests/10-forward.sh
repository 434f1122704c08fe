#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Frames through the guest: all of them come out, once, whole and in order.

export TEST=forward TIME_LIMIT=600
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

begin
listen forward
check "forwarding is set up" forwarding_on
stop_if_failed

all_forwarded "20000 frames of 60 bytes" 20000 60
all_forwarded "2000 frames of 1514 bytes" 2000 1514
all_forwarded "2000 frames the other way" 2000 60 1
all_forwarded "2000 frames of 16 flows" 2000 128 0 ',"flows":16'
# Odd lengths, and both sides of the limits of cache lines and buffers.
for size in 61 63 64 65 127 255 256 257 1023 1024 1513; do
	all_forwarded "200 frames of $size bytes" 200 $size
done
quiet forwarding
