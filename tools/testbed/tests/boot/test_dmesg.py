# SPDX-License-Identifier: GPL-2.0
"""The detector finds complaints and ignores ordinary messages."""

from __future__ import annotations

import unittest

from testbed.boot.dmesg import complaints

BAD = {
    "warning": "[    1.5] WARNING: CPU: 0 PID: 1 at net/core/dev.c:7 netif_napi_add+0x1/0x2",
    "bug": "[    2.0] BUG: spinlock bad magic on CPU#0, ip/77",
    "sleep in atomic": "[    2.0] BUG: scheduling while atomic: ip/77/0x00000002",
    "kasan": "[    3.1] BUG: KASAN: slab-use-after-free in ixgbe_poll+0x10/0x20",
    "ubsan": "UBSAN: array-index-out-of-bounds in drivers/net/x.c:12:3",
    "lockdep": "INFO: possible recursive locking detected",
    "rcu stall": "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "hang": "INFO: task ip:77 blocked for more than 30 seconds.",
    "checker out of memory": "DMA-API: cacheline tracking ENOMEM, dma-debug disabled",
    "mappings left behind": "DMA-API: x: driver has pending DMA allocations while released",
    "dma": "DMA-API: ixgbe_rust 0000:01:00.0: device driver failed to check map error",
    "leak": "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "memory": "refcount_t: underflow; use-after-free.",
    "netdev": "NETDEV WATCHDOG: eth0 (ixgbe_rust): transmit queue 0 timed out 5000 ms",
    "oops": "Oops: general protection fault, probably for non-canonical address",
    "panic": "Kernel panic - not syncing: Fatal exception in interrupt",
    "rust panic": "rust_kernel: panicked at 'index out of bounds', ixgbe_rust/rx.rs:10",
    "skb": "skbuff: skb_over_panic: text:ffffffff len:2000",
    "out of memory": "ip: page allocation failure: order:0, mode:0x40820",
    "segfault": "python3[88]: segfault at 0 ip 0000000000401136 sp 00007ffd error 4",
}
GOOD = """\
[    0.0] Linux version 7.3.4 (debug)
[    0.1] DMA-API: preallocated 65536 debug entries
[    0.1] DMA-API: debugging enabled by kernel config
[    0.2] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc.
[    0.2] kmemleak: Kernel memory leak detector initialized (mem pool available: 15000)
[    0.3] rcu: RCU lockdep checking is enabled.
[    0.4] ixgbe 0000:01:00.0 eth0: NIC Link is Up 10 Gbps
[    0.5] debugfs: mounted
"""


class DmesgTest(unittest.TestCase):
    def test_each_kind_is_found(self) -> None:
        for kind, line in BAD.items():
            found = complaints(f"{GOOD}{line}\nmore\n")
            self.assertEqual(len(found), 1, line)
            self.assertEqual(found[0].kind, kind, line)

    def test_ordinary_messages_are_no_complaints(self) -> None:
        self.assertEqual(complaints(GOOD), [])

    def test_a_trace_belongs_to_its_complaint(self) -> None:
        text = BAD["warning"] + "\nCPU: 0\nCall Trace:\n <TASK>\n"
        self.assertEqual([one.kind for one in complaints(text)], ["warning"])

    def test_a_trace_alone_is_a_complaint(self) -> None:
        self.assertEqual([one.kind for one in complaints("x\nCall Trace:\n")], ["call trace"])

    def test_what_a_test_provokes_can_be_left_out(self) -> None:
        text = BAD["out of memory"] + "\nCall Trace:\n" + BAD["kasan"]
        found = complaints(text, ignore=("out of memory",))
        self.assertEqual([one.kind for one in found], ["kasan"])

    def test_a_checker_without_memory_is_not_what_it_finds(self) -> None:
        starved = (
            "ref_tracker: memory allocation failure, unreliable refcount tracker.",
            "ODEBUG: Out of memory. ODEBUG disabled",
        )
        found = complaints("\n".join(starved))
        self.assertEqual([one.kind for one in found], ["checker out of memory"] * 2)
        found = complaints(
            "\n".join([*starved, "ref_tracker: netdev@77 has 1/1 users at", BAD["dma"]]),
            ignore=("checker out of memory",),
        )
        self.assertEqual([one.kind for one in found], ["ref tracker", "dma"])

    def test_injected_faults_are_not_complaints(self) -> None:
        text = "FAULT_INJECTION: forcing a failure.\nname failslab, interval 1\nCall Trace:\n x\n"
        self.assertEqual(complaints(text), [])

    def test_what_the_boot_provokes_does_not_count(self) -> None:
        text = f"[ 1.0] skbulk: complaints do not count\n{BAD['leak']}\n"
        self.assertEqual(complaints(text), [])
        text += f"[ 2.0] skbulk: complaints count again\n{BAD['leak']}\n"
        self.assertEqual([one.kind for one in complaints(text)], ["leak"])
