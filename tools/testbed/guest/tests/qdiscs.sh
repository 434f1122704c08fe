# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the files share variables
#
# How packets get into queueing disciplines.

CORE=/proc/sys/net/core

# setting NAME VALUE: of net.core, until the end
setting() {
	defer echo "$(<"$CORE/$1")" ">$CORE/$1"
	echo "$2" >"$CORE/$1"
}

# no_ways: this kernel knows only one.
no_ways() {
	[ ! -e "$CORE/xmit_llist_rust" ]
}

# way NAME: who puts packets into qdiscs, and how: C, Rust or batches.
way() {
	local rust=1 batch=0
	case $1 in
	C) rust=0 ;;
	batches) batch=1 ;;
	esac
	echo $rust >"$CORE/xmit_llist_rust" && echo $batch >"$CORE/qdisc_enqueue_batch" &&
		[ "$(<"$CORE/xmit_llist_rust")$(<"$CORE/qdisc_enqueue_batch")" = $rust$batch ]
}
