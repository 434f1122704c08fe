# SPDX-License-Identifier: GPL-2.0
"""The figures in the README."""

from __future__ import annotations

import unittest
from datetime import date
from pathlib import Path

from testbed.readme import PARTS, Circumstances, part, refusals, replace
from testbed.ui import Failure

TEXT = """# Title

<!-- figures of make bench: forward -->
old
<!-- end of figures -->
between
<!-- figures of make bench: insn -->
<!-- end of figures -->
end
"""
ALL = frozenset().union(*PARTS.values())
CIRCUMSTANCES = Circumstances(date(2026, 11, 21), "some CPU", 2, "7.3.4", 7)


class Figures(unittest.TestCase):
    """What replaces what."""

    def test_a_part_is_replaced_and_nothing_else(self) -> None:
        new = replace(TEXT, {"forward": "new\n"})
        self.assertEqual(new, TEXT.replace("old\n", "new\n"))
        self.assertEqual(replace(new, {"forward": "old\n"}), TEXT)

    def test_an_empty_part_is_filled(self) -> None:
        new = replace(TEXT, {"insn": "a\n\nb\n"})
        self.assertIn("insn -->\na\n\nb\n<!-- end of figures -->\nend\n", new)

    def test_a_place_that_is_not_there_is_an_error_that_names_it(self) -> None:
        with self.assertRaisesRegex(Failure, "0 places for the figures of memory"):
            replace(TEXT, {"memory": "x\n"})
        with self.assertRaisesRegex(Failure, "2 places for the figures of insn"):
            replace(TEXT + TEXT, {"insn": "x\n"})

    def test_a_table_says_where_it_comes_from(self) -> None:
        text = part(["", "forward: ours against C", "case  ours"], CIRCUMSTANCES)
        self.assertEqual(
            text,
            "2026-11-21, 2 processors of some CPU, Linux 7.3.4, 7 rounds:\n\n"
            "    forward: ours against C\n    case  ours\n",
        )

    def test_what_is_not_whole_or_was_disturbed_is_not_written(self) -> None:
        self.assertEqual(refusals(ALL, "", quiet=True), dict.fromkeys(PARTS, ""))
        self.assertEqual(refusals(["insn"], "1 flow", quiet=False), {"insn": ""})
        self.assertIn("busy", refusals(["forward"], "", quiet=False)["forward"])
        self.assertIn("CASES=1 flow", refusals(["forward"], "1 flow", quiet=True)["forward"])
        self.assertIn("qmempool, skb", refusals(["slab", "alf_queue"], "", quiet=True)["memory"])

    def test_the_readme_has_a_place_for_each(self) -> None:
        readme = Path(__file__).parents[3] / "README.md"
        replace(readme.read_text(), dict.fromkeys(PARTS, "x\n"))


if __name__ == "__main__":
    unittest.main()
