# SPDX-License-Identifier: GPL-2.0
"""Drivers of the user's own."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from testbed.build.driver import modules
from testbed.host.ui import Failure


class Modules(unittest.TestCase):
    """The modules of a build."""

    def setUp(self) -> None:
        self.out = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def built(self, *names: str) -> None:
        for name in names:
            (self.out / f"{name}.ko").touch()
        (self.out / "modules.order").write_text("".join(f"{name}.o\n" for name in names))

    def test_the_last_module_is_the_driver(self) -> None:
        self.built("helper", "my-driver")
        self.assertEqual([path.name for path in modules(Path("/src"), self.out)],
                         ["helper.ko", "my-driver.ko"])  # fmt: skip

    def test_paths_of_the_sources_are_found_in_the_output(self) -> None:
        (self.out / "sub").mkdir()
        self.built("sub/mine")
        (self.out / "modules.order").write_text("/src/sub/mine.o\n")
        self.assertEqual(modules(Path("/src"), self.out), (self.out / "sub/mine.ko",))

    def test_a_build_without_a_module_is_an_error_with_the_way_out(self) -> None:
        with self.assertRaisesRegex(Failure, "DRIVER=/src: its Makefile builds no module"):
            modules(Path("/src"), self.out)
        self.built("mine")
        (self.out / "mine.ko").unlink()
        with self.assertRaisesRegex(Failure, "builds no module"):
            modules(Path("/src"), self.out)
