# SPDX-License-Identifier: GPL-2.0
"""What one clone has built does not pass for what another one would."""

import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from testbed.model import forget_other_clones, target_folder


class Clones(unittest.TestCase):
    """Two clones share the folder in which cargo builds."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)

    def env(self, name: str) -> Any:
        """A clone with one crate, and what belongs to it."""
        crate = self.top / name / "tools/model"
        crate.mkdir(parents=True, exist_ok=True)
        (crate / "Cargo.toml").write_text('[package]\nname = "nicmodel"\n')
        return SimpleNamespace(clone=self.top / name, cache=self.top / "cache", toolchain_key="k")

    def built(self, name: str) -> Path:
        """What cargo remembers of a crate."""
        found = target_folder(self.env("one")) / "debug/.fingerprint" / f"{name}-0123"
        found.mkdir(parents=True, exist_ok=True)
        return found

    def test_own_crates_are_forgotten_when_the_clone_changes(self) -> None:
        forget_other_clones(self.env("one"))
        ours, other = self.built("nicmodel"), self.built("serde")
        forget_other_clones(self.env("one"))
        self.assertTrue(ours.exists())
        forget_other_clones(self.env("two"))
        self.assertFalse(ours.exists())
        self.assertTrue(other.exists())

    def test_a_folder_of_nobody_is_not_trusted(self) -> None:
        ours = self.built("nicmodel")
        forget_other_clones(self.env("one"))
        self.assertFalse(ours.exists())


if __name__ == "__main__":
    unittest.main()
