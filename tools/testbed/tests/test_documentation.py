# SPDX-License-Identifier: GPL-2.0
"""The kernel documentation: it is listed, and the code that it includes is there."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from testbed.selftests.kinds import programs

CLONE = Path(__file__).parents[3]
DOCUMENTS = sorted((CLONE / "Documentation").rglob("*.rst"))
INCLUDE = re.compile(r"^\.\. literalinclude:: (\S+)\n((?:   :.*\n)*)", re.M)
MARK = re.compile(r":(?:start-after|end-before): (.*)")
# A trait that a driver implements.
TRAIT = re.compile(r"^pub trait Driver: .*?^}$", re.M | re.S)
# A path in the lists of tools/testbed/README.md; NAME stands for a name to choose.
PATH = re.compile(r"^(?:\d\. |\*\*.*: )`((?:rust|drivers|samples|tools|testbed)/[^`]+)`", re.M)


class Documentation(unittest.TestCase):
    """Every document in Documentation/."""

    def test_code_that_is_included_is_there(self) -> None:
        found = 0
        for document in DOCUMENTS:
            for path, options in INCLUDE.findall(document.read_text()):
                text = (document.parent / path).read_text()
                for mark in MARK.findall(options):
                    self.assertEqual(text.count(f"{mark}\n"), 1, f"{document.name}: {mark}")
                    found += 1
        self.assertGreater(found, 0)

    def test_the_skeleton_is_included_and_not_copied(self) -> None:
        text = (CLONE / "Documentation/rust/netdev.rst").read_text()
        self.assertNotIn("code-block:: rust", text)
        self.assertIn("samples/rust/driver_net/rust_driver_net.rs", text)
        # A tutorial and a model: the rest belongs to the comments of types.
        self.assertLessEqual(len(text.splitlines()), 350)

    def test_every_callback_of_a_driver_is_explained(self) -> None:
        (trait,) = TRAIT.findall((CLONE / "rust/kernel/net/device/driver.rs").read_text())
        callbacks = re.findall(r"^    fn (\w+)", trait, re.M)
        self.assertGreater(len(callbacks), 10)
        text = (CLONE / "Documentation/rust/netdev.rst").read_text()
        self.assertEqual(
            [one for one in callbacks if not re.search(rf"``{one}(?:\(\))?``", text)], []
        )

    def test_every_folder_of_the_testbed_has_a_purpose(self) -> None:
        testbed = CLONE / "tools/testbed"
        text = (testbed / "README.md").read_text()
        folders = [path.parent.name for path in testbed.glob("testbed/*/__init__.py")]
        self.assertGreater(len(folders), 5)
        self.assertEqual([one for one in folders if f"| `testbed/{one}/`" not in text], [])

    def test_every_document_is_in_an_index(self) -> None:
        patches = "".join(path.read_text() for path in (CLONE / "patches").glob("*.patch"))
        for document in DOCUMENTS:
            self.assertRegex(patches, rf"(?m)^\+ +(?:[\w/]+/)?{document.stem}$", document.name)

    def test_the_files_to_change_are_there(self) -> None:
        found = PATH.findall((CLONE / "tools/testbed/README.md").read_text())
        self.assertGreater(len(found), 8)
        for name in found:
            place = CLONE / ("tools/testbed" if name.startswith("testbed/") else "") / name
            place = place.parent if "NAME" in place.name else place
            self.assertTrue(place.exists(), name)

    def test_every_program_for_guests_has_its_topic(self) -> None:
        text = (CLONE / "tools/testbed/guest/README.md").read_text()
        listed = re.findall(r"^\| `(\w+\.py)` \|", text, re.M)
        self.assertEqual(sorted(listed), sorted(programs(CLONE)))
