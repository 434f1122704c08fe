# SPDX-License-Identifier: GPL-2.0
"""Mutants of memory orderings."""

import unittest
from pathlib import Path

from testbed.build.orderings import EQUIVALENT, TESTS, Mutant, chosen, mutants, mutants_of
from testbed.suites.test_orderings import judge

TOOLS = Path(__file__).resolve().parents[3]
SOURCE = """\
use crate::sync::atomic::{
    Acquire,
    Release, //
};

// The load is not (Acquire) here.
impl Word for RoleWord {
    fn load(&self) -> u32 {
        self.0.load(Acquire)
    }

    fn swap(&self, new: u32) -> u32 {
        if new == 0 {
            return Err(Full);
        }
        self.0.xchg(new, Full)
    }
}
"""


class Orderings(unittest.TestCase):
    """Orderings found in the source, and their mutants."""

    def test_uses_are_found_but_not_imports_and_comments(self) -> None:
        self.assertEqual(
            [mutant.name for mutant in mutants_of("word.rs", SOURCE)],
            [
                "word.rs RoleWord::load: Acquire -> Relaxed",
                "word.rs RoleWord::swap: Full -> Acquire",
                "word.rs RoleWord::swap: Full -> Release",
            ],
        )

    def test_one_place_changes(self) -> None:
        first, *_ = mutants_of("word.rs", SOURCE)
        changed = first.applied(SOURCE)
        self.assertIn("self.0.load(Relaxed)", changed)
        imported = "\nuse crate::sync::atomic::Relaxed;\n"
        self.assertEqual(changed.replace("load(Relaxed)", "load(Acquire)"), SOURCE + imported)

    def test_a_module_is_not_another_one_that_ends_alike(self) -> None:
        listed = (
            "shared_tests::a: test\ntests::b: test\ntests::deep::c: test\n\n3 tests, 0 benchmarks"
        )
        self.assertEqual(chosen(listed, ["tests"]), ["tests::b", "tests::deep::c"])
        self.assertEqual(chosen(listed, ["llist_tests"]), [])

    def test_the_kernels_files_have_some(self) -> None:
        found = mutants(TOOLS)
        names = [mutant.name for mutant in found]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("alf_queue/atomics.rs Position::store_release: Release -> Relaxed", names)
        self.assertEqual({mutant.file.split("/")[0] for mutant in found}, set(TESTS))
        self.assertLessEqual(set(EQUIVALENT), set(names))

    def test_an_equivalent_one_must_survive_and_others_must_not(self) -> None:
        other = Mutant("word.rs", 3, "RoleWord::load", "Acquire", "Relaxed")
        file, _, rest = next(iter(EQUIVALENT)).partition(" ")
        function, _, change = rest.partition(": ")
        old, _, new = change.partition(" -> ")
        equivalent = Mutant(file, 3, function, old, new)
        self.assertIsNone(judge(other, survived=False))
        self.assertIsNone(judge(equivalent, survived=True))
        self.assertIn("line 4", judge(other, survived=True) or "")
        self.assertIsNotNone(judge(equivalent, survived=False))
