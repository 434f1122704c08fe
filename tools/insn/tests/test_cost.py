# SPDX-License-Identifier: GPL-2.0
"""Instructions per packet: adding up, the record, and its judgement."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from insn import cost as insn_cost
from insn.cost import Cost
from insn.counts import FunctionCount, WindowCount
from testbed.bench.rows import met
from testbed.bench.summary import lines
from testbed.host.ui import Failure


def window(label: str, driver: int, kernel: int, complete: bool = True) -> WindowCount:
    """100 packets with a driver."""
    module = insn_cost.MODULES[label]
    functions = [
        FunctionCount(module, "poll", driver - 1000),
        FunctionCount(module, "xmit", 1000),
        FunctionCount("vmlinux", "ip_forward", kernel - 200 - 5300),
        FunctionCount("vmlinux", "napi_consume_skb_bulk", 5000),
        FunctionCount("vmlinux", "page_pool_put_netmem_bulk", 300),
        FunctionCount("vmlinux", "kernel::net::rx_list::RxList::build_staged", 200),
        FunctionCount("[user]", "[user]", 12345),
    ]
    modules = {module: driver, "vmlinux": kernel}
    return WindowCount(label, complete, driver + kernel, modules, functions)


class CostTest(unittest.TestCase):
    """From windows to costs and rows."""

    def test_user_space_does_not_count(self) -> None:
        found = insn_cost.cost(window("rust", 40_000, 160_000), 100)
        cases = {"driver": 400.0, "kernel crate": 2.0, "memory": 53.0, "all": 2000.0}
        self.assertEqual(found.cases, cases)
        self.assertEqual(found.functions["ixgbe_rust poll"], 390.0)
        self.assertNotIn("[user] [user]", found.functions)

    def test_a_module_can_be_left_out(self) -> None:
        sent = window("rust", 40_000, 160_000)
        sent.by_module["[unknown]"] = 50_000
        for without, total in (((), 2500.0), (("[unknown]",), 2000.0)):
            found = insn_cost.cost(sent, 100, insn_cost.MODULES, without)
            self.assertEqual(found.cases["all"], total)

    def test_memory_is_that_of_packets_in_the_kernel_and_in_drivers(self) -> None:
        for name in ("kmem_cache_alloc_bulk_noprof", "ixgbe_rust::rx::RxRing::refill"):
            self.assertTrue(insn_cost.is_memory(name), name)
        for name in ("ip_forward", "ixgbe_rust::rx::RxRing::take", "kfree_rcu"):
            self.assertFalse(insn_cost.is_memory(name), name)

    def test_a_window_that_was_not_closed_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "rust ended too early"):
            insn_cost.costs([window("rust", 40_000, 160_000, complete=False)], 100)

    def test_rows_are_c_over_rust(self) -> None:
        rust = insn_cost.cost(window("rust", 40_000, 160_000), 100)
        c = insn_cost.cost(window("c", 60_000, 160_000), 100)
        rows = {row.case: row for row in insn_cost.rows({"rust": [rust, rust], "c": [c, c]})}
        self.assertEqual((rows["driver"].ours, rows["driver"].reference), (400.0, 600.0))
        self.assertEqual(rows["driver"].ratios, (1.5, 1.5))
        sent = {row.case: row for row in insn_cost.transmit_rows({"rust": [rust], "c": [c]})}
        self.assertEqual(list(sent), ["transmit driver", "transmit all"])
        self.assertEqual(sent["transmit driver"].ratios, (1.5,))
        self.assertEqual(rows["driver"].record()["reference_name"], "the C driver")
        self.assertTrue(met(rows["driver"]))
        self.assertFalse(met(rows["all"]))
        text = "\n".join(lines(rows.values(), lambda _: True))
        self.assertIn("400.0", text)
        self.assertIn("  below 1.16", text)

    def test_worst(self) -> None:
        runs = [
            Cost({"driver": 370.0, "all": 2100.0}, {"ixgbe_rust poll": 70.0}),
            Cost({"driver": 361.0, "all": 2200.0}, {"ixgbe_rust poll": 61.0}),
        ]
        found = insn_cost.worst(runs)
        self.assertEqual(found.cases, {"driver": 370.0, "all": 2200.0})
        self.assertEqual(found.functions, {"ixgbe_rust poll": 61.0})

    def test_typical_is_no_disturbed_run(self) -> None:
        runs = [
            Cost({"memory": 370.0, "all": 2857.0}, {"vmlinux get_page_from_freelist": 27.0}),
            Cost({"memory": 272.0, "all": 2717.0}, {"vmlinux get_page_from_freelist": 2.0}),
            Cost({"memory": 241.0, "all": 2720.0}, {"vmlinux get_page_from_freelist": 1.0}),
        ]
        found = insn_cost.typical(runs)
        self.assertEqual(found.cases, {"memory": 272.0, "all": 2720.0})
        self.assertEqual(found.functions, {"vmlinux get_page_from_freelist": 1.0})

    def test_spread(self) -> None:
        runs = [Cost({"all": 1000.0}), Cost({"all": 1010.0}), Cost({"all": 1005.0})]
        self.assertAlmostEqual(insn_cost.spread(runs, "all"), 0.01)

    def test_top_is_sorted_and_cut(self) -> None:
        found = Cost({}, {"vmlinux a": 1.0, "vmlinux b": 3.0, "ixgbe c": 2.0})
        lines = insn_cost.top(found, "x", 2)
        self.assertEqual([line.split()[-1] for line in lines[1:]], ["b", "c"])


class RecordTest(unittest.TestCase):
    """The committed record."""

    def setUp(self) -> None:
        self.path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "insn.json"
        self.rust = insn_cost.cost(window("rust", 40_000, 160_000), 100)
        c = insn_cost.cost(window("c", 60_000, 160_000), 100)
        insn_cost.save(self.path, {"rust": self.rust, "c": c}, "7.3.4", 100)

    def judge(self, found: Cost) -> dict[str, str | None]:
        """Against the record."""
        return insn_cost.judge(insn_cost.load(self.path), found)

    def test_the_same_is_kept(self) -> None:
        self.assertEqual(self.judge(self.rust), dict.fromkeys(("driver", "memory", "all")))

    def test_less_and_a_little_more_is_kept(self) -> None:
        less = insn_cost.cost(window("rust", 30_000, 160_000), 100)
        self.assertEqual(set(self.judge(less).values()), {None})
        more = insn_cost.cost(window("rust", 40_390, 160_000), 100)
        self.assertEqual(set(self.judge(more).values()), {None})

    def test_more_than_a_percent_names_what_grew(self) -> None:
        found = self.judge(insn_cost.cost(window("rust", 41_000, 160_000), 100))
        self.assertIsNone(found["all"])
        self.assertRegex(found["driver"] or "", r"410\.0 .* 2\.5 % more .* 400\.0")
        self.assertIn("ixgbe_rust poll (+10.0)", found["driver"] or "")
        self.assertIn("RECORD=1", found["driver"] or "")

    def test_growth_outside_of_the_driver_is_named_too(self) -> None:
        found = self.judge(insn_cost.cost(window("rust", 40_000, 170_000), 100))
        self.assertIsNone(found["driver"])
        self.assertIn("vmlinux ip_forward (+100.0)", found["all"] or "")
