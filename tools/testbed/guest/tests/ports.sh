# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the files share variables
#
# The two ports: their driver, PCI devices, network interfaces and links.

case ${DRIVER:=rust} in
rust) MODULE=ixgbe_rust ;;
c) MODULE=ixgbe ;;
*)
	echo "Bail out! DRIVER=$DRIVER is neither rust nor c"
	exit 1
	;;
esac

PCI=/sys/bus/pci/devices

# load / unload: the driver under test. The modules that it needs stay.
load() {
	load-driver "$DRIVER"
}

unload() {
	unload-driver "$DRIVER"
}

# Addresses of the two PCI devices, in the order of the wires.
PCI_PORT=()
for device in "$PCI"/*; do
	[ "$(<"$device/vendor") $(<"$device/class")" = "0x8086 0x020000" ] &&
		PCI_PORT+=("${device##*/}")
done

# find_netdevs: sets P0 and P1 to the names of the interfaces, if they are here.
find_netdevs() {
	local left=("$PCI/${PCI_PORT[0]:-none}"/net/*) right=("$PCI/${PCI_PORT[1]:-none}"/net/*)
	P0=${left[0]##*/} P1=${right[0]##*/}
	[ -d "${left[0]}" ] && [ -d "${right[0]}" ]
}

find_ports() {
	until_true 20 find_netdevs || {
		echo "$MODULE made no interfaces for ${PCI_PORT[*]:-any device}" >&2
		return 1
	}
}

has_carrier() {
	local port
	for port; do
		[ "$(<"/sys/class/net/$port/carrier")" = 1 ] || return 1
	done
}

is_up() {
	local port
	for port; do
		[ "$(<"/sys/class/net/$port/operstate")" = up ] || return 1
	done
}

# carriers PORT...: waits until the ports may send. The carrier alone is too
# early: the queues drop everything until the link watch, which a busy machine
# may put off, has seen it too.
carriers() {
	until_true 20 is_up "$@" || {
		echo "not up after 20 s: $*" >&2
		return 1
	}
	pause 0.2
}

# up PORT...: sets interfaces up and waits until they may send.
up() {
	local port
	for port; do
		echo "link set $port up"
	done | ip -batch - && carriers "$@"
}

# begin: what most tests start with; ends the test if it does not work.
begin() {
	local why
	[ ! -e /run/netns/left ] || cable_off
	if ! why=$(load 2>&1 && find_ports 2>&1); then
		not_ok "the driver brings up two ports" "$why"
		exit 1
	fi
	find_netdevs
	wire_open
	wire_bare
}

# statistic PORT NAME: into REPLY
statistic() {
	REPLY=$(<"/sys/class/net/$1/statistics/$2")
}

# queues_sum PORT FILE: adds up what the transmit queues say in FILE, into REPLY.
# Which of them is used depends on the CPU.
queues_sum() {
	local file sum=0
	for file in "/sys/class/net/$1/queues"/tx-*/"$2"; do
		sum=$((sum + $(<"$file")))
	done
	REPLY=$sum
}

# counters PORT NAME...: the sum of them out of ethtool -S, into REPLY
counters() {
	local port=$1
	shift
	REPLY=$(ethtool -S "$port" | awk -v names=" $* " \
		'index(names, " " substr($1, 1, length($1) - 1) " ") { sum += $2 } END { print sum + 0 }')
}

mac_of() {
	REPLY=$(<"/sys/class/net/$1/address")
}
