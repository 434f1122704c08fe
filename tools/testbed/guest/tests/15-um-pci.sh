#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PCI over virtio, by which User-Mode Linux reaches the ports: every kind of
# access, from several contexts at once.

export TEST=um-pci TIME_LIMIT=300
# shellcheck source=lib.sh
. /mnt/clone/tools/testbed/guest/tests/lib.sh

MODULE_FILE=$(find /mnt/build -name um_pci_check.ko)
if [ ! -e "$MODULE_FILE" ]; then
	skip "PCI over virtio" "this kernel has none (MACHINE=uml has)"
	exit 0
fi

# verdicts: one for each line of the module.
verdicts() {
	local word rest
	while read -r word rest; do
		case "$word $rest" in
		"ok "*) ok "$rest" ;;
		"not ok "*)
			rest=${rest#ok }
			not_ok "${rest%%:*}" "${rest#*: }"
			;;
		esac
	done < <(dmesg | sed -n 's/.*um_pci_check: //p')
}

begin
check "the driver can be unloaded" unload
stop_if_failed "the card has a driver"

listen accesses
check "all checks of the module" insmod "$MODULE_FILE"
verdicts
quiet accesses
[ ! -d /sys/module/um_pci_check ] || rmmod um_pci_check

check "the driver can be loaded again" load
check "both ports come back" find_ports
