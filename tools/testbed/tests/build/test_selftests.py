# SPDX-License-Identifier: GPL-2.0
"""Tests of the build of the kernel's selftests; no compiler is needed."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from testbed.build.selftests import Selftests


class Programs(unittest.TestCase):
    """The programs of an installation."""

    def test_those_of_the_list_and_executable_scripts(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "kselftest-list.txt").write_text("net:a.sh\nnet/hw:b.py\nnet/hw:c\n")
            for program, mode in (("b.py", 0o644), ("c", 0o755), ("d.py", 0o755), ("e.sh", 0o644)):
                path = root / "net/hw" / program
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode)
            self.assertEqual(
                Selftests(root).programs("net/hw"), ["net/hw/b.py", "net/hw/c", "net/hw/d.py"]
            )
