# SPDX-License-Identifier: GPL-2.0
"""Recorded results, and the files generated from them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import unittest
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from testbed.bench import record, report
from testbed.bench.about import ABOUT, REFERENCES, TITLES
from testbed.bench.record import PARTS, Circumstances, refusals
from testbed.bench.rows import Row
from testbed.catalogue import MEMORY
from testbed.host.ui import Failure
from testbed.selftests import record as selftests

CLONE = Path(__file__).parents[4]
CIRCUMSTANCES = Circumstances("2026-11-21", "abc1234", "some CPU", 2, "7.3.4", 7)
ROW = Row("slab", "bulk 16", "ns", 4.0, 8.0, (1.9, 2.0, 2.2))
README = """# Title

<!-- recorded: demo -->
old
<!-- end of recorded -->
between
<!-- recorded: durations -->
<!-- end of recorded -->
end
"""


class About(unittest.TestCase):
    """The paragraphs in front of the tables."""

    def test_each_table_has_the_limits_of_its_meaning(self) -> None:
        for name, text in ABOUT.items():
            self.assertRegex(text, r"\b[Mm]eans? (?:nothing|little)\b", name)


class Records(unittest.TestCase):
    """Files of results."""

    def folder(self) -> Path:
        return Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_what_is_saved_is_loaded_with_its_circumstances(self) -> None:
        clone = self.folder()
        record.save(clone, "memory", CIRCUMSTANCES, {"rows": record.rows_of("memory", [ROW])})
        content = record.load(clone)["memory"]
        self.assertEqual(Circumstances.of(content), CIRCUMSTANCES)
        again = Row.from_record(content["rows"][0])
        self.assertEqual((again.ours, again.reference, again.ratio), (4.0, 8.0, 2.0))
        self.assertEqual((min(again.ratios), max(again.ratios)), (1.9, 2.2))

    def test_a_row_has_a_line_of_its_own(self) -> None:
        path = record.save(self.folder(), "memory", CIRCUMSTANCES,
                           {"rows": record.rows_of("memory", [ROW, ROW])})  # fmt: skip
        self.assertEqual(path.read_text().count("\n  {"), 2)

    def test_rows_go_to_the_part_of_their_benchmark(self) -> None:
        self.assertEqual(record.rows_of("forward", [ROW]), [])
        self.assertEqual(len(record.rows_of("memory", [ROW])), 1)
        rows = [replace(ROW, bench=name) for name in ("forward-cost", "window", "window-events")]
        for part, benches in {
            "forward": ["forward-cost"],
            "window": ["window", "window-events"],
        }.items():
            found = [one["bench"] for one in record.rows_of(part, rows)]
            self.assertEqual(found, benches)

    def test_a_record_does_not_make_the_next_one_of_another_commit(self) -> None:
        clone = self.folder()
        for name in ("README.md", "code"):
            (clone / name).write_text("old")
        git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@example.org"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], check=True)
        (clone / "README.md").write_text("new")
        self.assertNotIn("+", record.commit(clone))
        (clone / "code").write_text("new")
        self.assertIn("+", record.commit(clone))

    def test_a_damaged_record_is_named_with_the_way_out(self) -> None:
        clone = self.folder()
        path = record.save(clone, "memory", CIRCUMSTANCES, {"rows": []})
        for text in ("{", "{}", '{"date": "never"}'):
            path.write_text(text)
            with self.assertRaisesRegex(Failure, "memory.json is no recorded result"):
                record.load(clone)

    def test_disturbed_and_partial_measurements_are_refused(self) -> None:
        every = frozenset().union(*PARTS.values())
        self.assertEqual(refusals(every, "", quiet=True), dict.fromkeys(PARTS, ""))
        self.assertEqual(refusals(["insn"], "1 flow", quiet=False), {"insn": ""})
        self.assertIn("busy", refusals(["forward"], "", quiet=False)["forward"])
        for part in ("forward", "tcp"):
            self.assertIn("CASES=1 flow", refusals([part], "1 flow", quiet=True)[part])
        found = refusals(["forward"], "window", quiet=True)
        self.assertEqual((bool(found["forward"]), found["window"]), (True, ""))
        self.assertIn("alf_queue, qmempool", refusals(["slab"], "", quiet=True)["memory"])

    def test_the_commit_of_another_users_clone_is_known(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can give a folder away")
        clone = self.folder()
        git = ["git", "-C", clone, "-c", "user.name=x", "-c", "user.email=x@localhost"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        for path in (clone, clone / ".git"):
            os.chown(path, 65534, 65534)
        self.assertRegex(record.commit(clone), r"^[0-9a-f]{7}$")

    def test_the_commit_of_no_repository_is_unknown(self) -> None:
        self.assertEqual(record.commit(self.folder()), "unknown")


class Report(unittest.TestCase):
    """RESULTS.md and the generated parts of README.md."""

    def content(self, **more: Any) -> dict[str, Any]:
        return {**asdict(CIRCUMSTANCES), **more}

    def test_the_files_are_in_step_with_the_records(self) -> None:
        for path, text in report.rendered(CLONE).items():
            self.assertEqual(path.read_text(), text, f"{path.name}: run make results")
        self.assertEqual(report.plots_to_draw(CLONE), [], "run make results")

    def test_every_record_has_a_title_and_every_table_a_sentence(self) -> None:
        records = record.load(CLONE)
        self.assertEqual(set(records) - set(TITLES), set())
        for bench in REFERENCES:
            self.assertIn(bench, ABOUT)
        for name, content in records.items():
            for row in content.get("rows", []):
                self.assertIn(row["bench"], ABOUT, name)

    def test_each_table_of_a_benchmark_of_memory_has_its_texts(self) -> None:
        folder = CLONE / "samples/rust/bulk_bench/reference"
        for path in folder.glob("bench_*.c"):
            # Without these, RECORD=1 fails after the measurement.
            tables = set(re.findall(r'bench_time\("([\w-]+)"', path.read_text()))
            name = path.stem.removeprefix("bench_").removesuffix("_reference")
            for table in tables | {name}:
                self.assertIn(table, ABOUT, path.name)
        self.assertEqual([name for name in MEMORY if name not in REFERENCES], [])

    def test_a_benchmark_of_memory_has_its_modules(self) -> None:
        folder = CLONE / "samples/rust/bulk_bench"
        ours = {path.stem for path in folder.glob("bench_*.rs")}
        references = {path.stem for path in folder.glob("reference/bench_*.c")}
        self.assertEqual(references, {f"bench_{name}_reference" for name in MEMORY})
        self.assertEqual(ours, {f"bench_{name}" for name in MEMORY})

    def test_a_table_says_where_it_comes_from_and_what_it_compares(self) -> None:
        text = report.render({"memory": self.content(rows=[ROW.record()])})
        self.assertIn("2026-11-21, commit abc1234, 2 processors of some CPU, Linux 7.3.4, "
                      "7 rounds.", text)  # fmt: skip
        self.assertIn("slab: ours against kmem_cache_*_bulk", text)
        self.assertIn("Compares `Batch` with `kmem_cache_*_bulk()`", text)

    def test_selftests_are_shown_side_by_side_and_added_up(self) -> None:
        one = {"pass": 3, "fail": 1, "skip": 2, "cases": {"x": {"result": "fail", "reason": ""}}}
        content = self.content(rust={"stats.py": one}, c={"stats.py": one, "tso.py": one})
        text = report.programs(content)
        self.assertIn("| stats.py | 3 | 1 | 2 | 3 | 1 | 2 |", text)
        self.assertIn("| tso.py | 3 | 1 | 2 | - | - | - |", text)
        self.assertIn("**6**", text)
        text = report.render({"selftests": content})
        self.assertIn("C: 6 cases pass, 2 fail, 4 are skipped; Rust: 3 cases pass", text)
        self.assertNotIn("Run again", text)

    def test_selftests_that_were_run_again_are_named(self) -> None:
        def results(count: int, *names: str) -> dict[str, object]:
            return {name: {"pass": count, "fail": 0, "skip": 0, "cases": {}} for name in names}

        old = self.content(rust=results(1, "stats.py", "tso.py"), c=results(1, "stats.py"))
        new = {"rust": results(5, "tso.py"), "c": results(7, "tso.py")}
        content = {**old, **selftests.renewed(old, new, "2026-11-30, commit abc1234")}
        text = report.render({"selftests": content})
        self.assertIn("C: 8 cases pass, 0 fail, 0 are skipped; Rust: 6 cases pass", text)
        self.assertIn("Run again since: tso.py (2026-11-30, commit abc1234).\n", text)

    def test_results_are_short(self) -> None:
        self.assertLessEqual(len((CLONE / "RESULTS.md").read_text().splitlines()), 300)

    def test_the_readme_gets_its_parts_and_keeps_the_rest(self) -> None:
        commands = {"make demo": {"cold": 652, "warm": 53}, "make test": {"cold": None}}
        new = report.readme(README, {"durations": self.content(commands=commands)})
        self.assertIn("| `make demo` | 10 m 52 s | 53.0 s |", new)
        self.assertIn("| `make test` | not measured | not measured |", new)
        self.assertIn("old\n", new)
        self.assertTrue(new.endswith("<!-- end of recorded -->\nend\n"))
        self.assertEqual(report.readme(new, {}), new)

    def test_a_place_that_is_missing_or_doubled_is_an_error(self) -> None:
        with self.assertRaisesRegex(Failure, "0 places for the demo record"):
            report.readme("# Title\n", {})
        with self.assertRaisesRegex(Failure, "2 places for the demo record"):
            report.readme(README + README, {})

    def test_the_readme_is_short(self) -> None:
        self.assertLessEqual(len((CLONE / "README.md").read_text().splitlines()), 150)

    def test_records_are_json_that_others_can_read(self) -> None:
        for path in sorted((CLONE / record.FOLDER).glob("*.json")):
            self.assertIsInstance(json.loads(path.read_text()), dict, path)
