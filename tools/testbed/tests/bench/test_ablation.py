# SPDX-License-Identifier: GPL-2.0
"""The settings of make bench ONLY=ablation, their rows, and the section of RESULTS.md."""

from __future__ import annotations

import json
import re
import unittest
from pathlib import Path

from insn.cost import CASES, Cost
from insn.counts import WindowCount
from testbed.bench import plots, report
from testbed.bench.ablation import figures, section
from testbed.bench.ablation.settings import (
    BASE,
    MECHANISMS,
    OTHERS,
    PLAINEST,
    added,
    all_settings,
    before,
    cells,
)
from testbed.bench.rows import Row
from testbed.build.config import Fragment
from testbed.catalogue import ALONE, BENCHES
from testbed.host.ui import Failure

CLONE = Path(__file__).parents[4]
HEADER = CLONE / "include/net/net_ablation.h"
SETTINGS = {one.name: one for one in all_settings()}


def line(load: str, setting: str, base: bool, cost: float, interrupts: float, pair: int = 1) -> str:
    return json.dumps({"load": load, "setting": setting, "base": base, "cost": cost,
                       "interrupts": interrupts, "pair": pair})  # fmt: skip


# An interrupt takes 10 us.
CALIBRATED = [line("window 1", BASE, True, 10_200.0, 1.0), line("window 256", "x", True, 200.0, 0)]


def costs(**more: float) -> list[tuple[str, Cost]]:
    """Of all settings; `more` are instructions beyond those of the driver as it is."""
    order = [*SETTINGS, BASE]
    return [(name, Cost(dict.fromkeys(CASES, 100.0 + more.get(name, 0)))) for name in order]


class Settings(unittest.TestCase):
    """The states of the mechanisms."""

    def test_each_mechanism_is_off_alone(self) -> None:
        for name in (*MECHANISMS, *OTHERS):
            one = SETTINGS[name]
            states = [bool(one.keys), one.pages, one.usecs is not None]
            self.assertEqual(states.count(True), 1, name)
        self.assertEqual(SETTINGS[BASE].keys, ())

    def test_they_are_added_one_by_one(self) -> None:
        self.assertEqual(before(MECHANISMS[0]), PLAINEST)
        for name in MECHANISMS:
            this, last = SETTINGS[added(name)], SETTINGS[before(name)]
            self.assertTrue({*this.keys} <= {*last.keys} and this.pages <= last.pages)
            self.assertNotEqual(this, last)
        final = SETTINGS[added(MECHANISMS[-1])]
        self.assertEqual((final.keys, final.pages, final.usecs), ((), False, None))

    def test_there_is_a_key_for_each(self) -> None:
        known = set(re.findall(r"struct static_key_false (\w+);", HEADER.read_text()))
        # The other one is that of make bench ONLY=maple.
        keys = {key for one in SETTINGS.values() for key in one.keys}
        self.assertEqual(keys | {"sheaves"}, known)
        text = (CLONE / "net/core/net_ablation.c").read_text()
        self.assertEqual(set(re.findall(r"&net_ablation\.(\w+), 0644\)", text)), known)

    def test_each_key_is_asked_for(self) -> None:
        asked = {
            key
            for top in ("rust/kernel/net", "patches")
            for path in (CLONE / top).rglob("*")
            if path.suffix in (".rs", ".patch")
            for key in re.findall(r"(?:is_off!|net_ablation_is_off)\((\w+)\)", path.read_text())
        }
        known = set(re.findall(r"struct static_key_false (\w+);", HEADER.read_text()))
        self.assertEqual(asked, known)

    def test_no_kernel_has_the_keys_but_the_benchmarks(self) -> None:
        for path in (CLONE / "tools/testbed/configs").glob("*.config"):
            asks = "CONFIG_NET_ABLATION" in Fragment(path.name, path.read_text()).symbols
            self.assertEqual(asks, path.name == "ablation.config", path.name)

    def test_it_runs_only_if_it_is_named(self) -> None:
        self.assertIn("ablation", ALONE)
        self.assertIn("ablation", BENCHES)


class Rows(unittest.TestCase):
    """Rows from counts, and from the guest's lines."""

    def rows(self, *lines: str) -> dict[tuple[str, str], Row]:
        return {(row.bench, row.case): row for row in figures.parse([*CALIBRATED, *lines])}

    def test_instructions_are_those_saved(self) -> None:
        found = {row.case: row for row in figures.counted(costs(**{"heads in bulk": 50.0}))}
        row = found["heads in bulk, all"]
        self.assertEqual((row.ours, row.reference, row.ratio), (100.0, 150.0, 1.5))
        self.assertEqual(found["pages in bulk, all"].ratio, 1.0)

    def test_a_window_in_which_packets_got_lost_does_not_count(self) -> None:
        windows = [WindowCount(BASE, True, total, {}, []) for total in (1, 2)]
        lines = [json.dumps({"setting": BASE, "lost": lost}) for lost in (3, 0)]
        self.assertEqual([one.total for one in figures.whole(lines, windows)], [2])
        with self.assertRaisesRegex(Failure, "1 windows of 2 measurements"):
            figures.whole(lines, windows[:1])

    def test_a_step_is_compared_with_the_one_before(self) -> None:
        more = {PLAINEST: 80.0, added(MECHANISMS[0]): 30.0}
        found = {row.case: row for row in figures.counted(costs(**more))}
        row = found[f"added: {MECHANISMS[0]}, memory"]
        self.assertEqual((row.ours, row.reference), (130.0, 180.0))
        self.assertEqual(found[f"added: {MECHANISMS[1]}, memory"].reference, 130.0)

    def test_the_time_of_interrupts_is_left_out(self) -> None:
        found = self.rows(line("window 64", "heads in bulk", True, 500.0, 0.02),
                          line("window 64", "heads in bulk", False, 500.0, 0.01))  # fmt: skip
        row = found["ablation", "window 64, heads in bulk"]
        self.assertEqual((row.ours, row.reference), (300.0, 400.0))
        self.assertEqual(found["ablation-events", "an interrupt"].ours, 10_000.0)
        events = found["ablation-events", "window 64, heads in bulk"]
        self.assertEqual((events.ours, events.reference, events.unit), (20.0, 10.0, "per 1000"))

    def test_tcp_has_interrupts_per_mebibyte(self) -> None:
        found = self.rows(line("TCP 1 flow", BASE, True, 900.0, 10.24),
                          line("TCP 1 flow", BASE, False, 1000.0, 10.24))  # fmt: skip
        row = found["ablation-tcp", f"TCP 1 flow, {BASE}"]
        self.assertEqual((row.ours, row.reference), (800.0, 900.0))

    def test_steps_are_multiples_of_the_driver_beside_them(self) -> None:
        # The machine was twice as slow at the second step.
        found = self.rows(
            line("window 256", PLAINEST, True, 200.0, 0),
            line("window 256", PLAINEST, False, 400.0, 0),
            line("window 256", added(MECHANISMS[0]), True, 400.0, 0),
            line("window 256", added(MECHANISMS[0]), False, 400.0, 0),
        )  # fmt: skip
        self.assertEqual(found["ablation", f"window 256, added: {MECHANISMS[0]}"].ratio, 2.0)

    def test_without_the_time_of_an_interrupt_there_are_no_times(self) -> None:
        self.assertEqual(figures.parse([line("window 64", BASE, True, 1.0, 0.0)]), [])

    def test_a_setting_that_failed_has_no_row(self) -> None:
        failed = json.dumps({"case": "heads in bulk", "failed": "packets get lost", "pair": 1})
        self.assertNotIn(("ablation", "window 64, heads in bulk"), self.rows(failed))


class Section(unittest.TestCase):
    """The section of RESULTS.md."""

    def lines(self, rows: list[Row]) -> dict[str, str]:
        _, *lines = section.lines(rows)
        names = (BASE, *MECHANISMS, *OTHERS, PLAINEST)
        self.assertTrue(all(map(str.startswith, lines, names)))
        return dict(zip(names, lines, strict=True))

    def row(self, name: str, *ratios: float, load: str = "window 64") -> Row:
        return Row("ablation", f"{load}, {name}", "ns", 1.0, 1.0, ratios)

    def test_each_row_ends_with_a_sentence_from_its_figures(self) -> None:
        rows = figures.counted(costs(**{"heads in bulk": 50.0}))
        rows += [self.row(BASE, 0.99, 1.01), self.row("heads in bulk", 1.1, 1.2),
                 self.row("pages in bulk", 0.98, 1.2), self.row("net_dim", 0.8, 0.9)]  # fmt: skip
        found = self.lines(rows)
        self.assertRegex(found[BASE], r"Noise, up to 1% in a pair\.$")
        heads = found["heads in bulk"]
        self.assertRegex(heads, r"\+50\.0 .*\+15%.*Saves 50 instructions; saves time in 1 of 1")
        self.assertRegex(found["pages in bulk"], r"Instructions within the noise; no clear time\.$")
        self.assertRegex(
            found["net_dim"], r"Instructions within the noise; costs time in 1 of 1 loads\.$"
        )

    def test_noise_is_no_worth(self) -> None:
        counts = costs(**{"heads in bulk": 50.0})
        last = Cost(dict.fromkeys(CASES, 160.0))
        found = self.lines(figures.counted([*counts[:-1], (BASE, last)]))
        self.assertRegex(found["heads in bulk"], r"\+50\.0 .*Instructions within the noise;")

    def test_where_interrupts_decide_there_is_no_figure(self) -> None:
        each = Row("ablation-events", figures.INTERRUPT, "ns", 10_000.0, None, ())
        for more, sign in ((90.0, "irqs"), (11.0, "+15%")):
            events = Row("ablation-events", "TCP 1 flow, net_dim", "per MiB", 10.0, more, ())
            time = Row("ablation-tcp", "TCP 1 flow, net_dim", "ns", 1000.0, 1150.0, (1.1, 1.2))
            text = self.lines([each, events, time])["net_dim"]
            self.assertIn(f" {sign} ", text)
            verdict = "saves time in 1 of 1 loads" if sign == "+15%" else "time not measured"
            self.assertRegex(text, rf"; {verdict}\.$")

    def test_its_rows_are_no_curves(self) -> None:
        rows = [self.row(name, 1.0, load=one["case"])
                for name in (BASE, *MECHANISMS, *OTHERS, PLAINEST) for one in cells()]  # fmt: skip
        self.assertEqual([one for one in plots.curves(rows).values() if one], [])

    def test_a_figure_that_is_unknown_is_a_dash(self) -> None:
        for name, text in self.lines([]).items():
            self.assertNotRegex(text.removeprefix(name), r"\d", name)
            self.assertRegex(text, r" - .*[Nn]ot measured", name)

    def test_it_is_short(self) -> None:
        text = report.render({"ablation": {
            "date": "2026-11-29", "commit": "abc1234", "cpu": "some CPU", "processors": 2,
            "kernel": "7.3.4", "rounds": 5, "rows": [],
        }})  # fmt: skip
        self.assertLessEqual(len(text.partition("## ")[2].splitlines()), 25)

    def test_loads_are_those_of_the_guest(self) -> None:
        self.assertEqual([one["kind"] for one in cells()], ["window"] * 4 + ["tcp"] * 3)


if __name__ == "__main__":
    unittest.main()
