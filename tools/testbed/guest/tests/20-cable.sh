#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two network namespaces over a cable: ping, and TCP compared by checksum.

export TEST=cable TIME_LIMIT=1200
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

begin
listen cable
defer cable_off
check "two namespaces reach each other" cable_on
stop_if_failed

left() { ip netns exec left "$@"; }
right() { ip netns exec right "$@"; }

for size in 0 56 1472; do
	check "ping with $size bytes" left ping -q -c 5 -i 0.05 -W 2 -s "$size" 10.9.0.2
done
check "ping in fragments" left ping -q -c 5 -i 0.05 -W 2 -s 8000 10.9.0.2
check "ping the other way" right ping -q -c 5 -i 0.05 -W 2 10.9.0.1
same "flood ping loses nothing" 0 \
	"$(left ping -q -f -c 1000 -W 2 10.9.0.2 | sed -n 's/.* \([0-9.]*\)% packet loss.*/\1/p')"

# transfer NAME BYTES FROM HOW
transfer() {
	local name=$1 bytes=$2 how=$3 got
	right python3 "$TESTS/transfer.py" receive 10.9.0.2 5000 >/tmp/received &
	local receiver=$!
	got=$(left timeout 900 python3 "$TESTS/transfer.py" send 10.9.0.2 5000 "$bytes" "$how" 2>&1)
	wait "$receiver"
	same "$name" "$got" "$(</tmp/received)"
}

# The C driver is here to judge the model: less will do.
case $DRIVER in
c) megabytes=10 ;;
*) megabytes=50 ;;
esac
transfer "$megabytes MB of TCP by sendfile arrive as they were" "${megabytes}000000" sendfile
transfer "5 MB of TCP by small writes arrive as they were" 5000000 write

if left ethtool -k "$P0" | grep -q '^scatter-gather: on'; then
	ok "scatter-gather is on"
else
	not_ok "scatter-gather is on" "ethtool -k says $(left ethtool -k "$P0" | grep '^scatter-gather')"
fi
left ethtool -K "$P0" sg off >/dev/null 2>&1
if left ethtool -k "$P0" | grep -q '^scatter-gather: off'; then
	transfer "5 MB of TCP without scatter-gather" 5000000 sendfile
	left ethtool -K "$P0" sg on >/dev/null 2>&1
else
	skip "5 MB of TCP without scatter-gather" "the driver does not let it be switched off"
fi
quiet cable
