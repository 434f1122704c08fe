# SPDX-License-Identifier: GPL-2.0
"""make debug and make deb: the commands of gdb, the contents of packages."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from testbed import settings
from testbed.build import kernel
from testbed.build.config import fragments, merged
from testbed.env import Env
from testbed.host.ui import Failure
from testbed.verbs import deb, debug

CLONE = Path(__file__).resolve().parents[4]
MADE: Any = SimpleNamespace(build=Path("/b"), tree=SimpleNamespace(work=Path("/t")))


def env_of(verb: str, out: Path) -> Env:
    values = settings.read(verb, {})
    env = Env(values, CLONE, out, out, Path("/"), CLONE, "", 1)
    env.__dict__["toolchain_key"] = "tools"
    return env


class DebugTest(unittest.TestCase):
    def test_the_kernel_has_dwarf_in_a_folder_of_its_own(self) -> None:
        env, plain = env_of("debug", CLONE), env_of("shell", CLONE)
        text = merged(fragments(env, "perf", CLONE))
        self.assertIn("CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y\n", text)
        self.assertIn("CONFIG_DEBUG_INFO_NONE=n\n", text)
        self.assertNotEqual(kernel.build_folder(env, "perf"), kernel.build_folder(plain, "perf"))

    def test_the_command_names_vmlinux(self) -> None:
        command = debug.gdb_command(MADE, CLONE / "out/debug.gdb", CLONE)
        self.assertEqual(command, "tools/buildroot run gdb -x out/debug.gdb /b/vmlinux")

    def test_gdb_waits_only_if_asked(self) -> None:
        self.assertIn("-S", debug.stub_words(Path("/s"), True))
        self.assertNotIn("-S", debug.stub_words(Path("/s"), False))
        # Before the kernel runs there is no list of modules to read.
        lines = debug.gdb_commands(MADE, Path("/s"), True).splitlines()
        self.assertLess(lines.index("hbreak start_kernel"), lines.index("lx-symbols /b"))
        self.assertNotIn("continue", debug.gdb_commands(MADE, Path("/s"), False))

    def test_an_address_that_is_too_long_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "too long for the address of a socket"):
            debug._socket(env_of("debug", Path("/x" * 60)))


class DebTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def package(self, *files: str) -> Path:
        tree = self.top / "tree"
        for name in ("DEBIAN/control", *files):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).touch()
        (tree / "DEBIAN/control").write_text(
            "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\n"
            "Description: x\n"
        )
        path = self.top / "x.deb"
        subprocess.run(["dpkg-deb", "-b", tree, path], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_the_drivers_are_looked_for_in_the_packages(self) -> None:
        module = "lib/modules/7.3/kernel/drivers/net/ixgbe.ko.xz"
        names = deb.contents(self.package("boot/vmlinuz-7.3", module, "usr/share/doc/x"))
        self.assertEqual(names, ["./boot/vmlinuz-7.3", f"./{module}", "./usr/share/doc/x"])
        self.assertEqual(deb.missing_drivers(self.top, ("ixgbe_rust", "ixgbe")), ["ixgbe_rust"])

    def test_packages_come_from_another_file_system(self) -> None:
        made = SimpleNamespace(build=self.top / "cache/build-deb", release="7.3")
        names = ("linux-image-7.3_1_amd64.deb", "linux-headers-7.3_1_amd64.deb")
        made.build.mkdir(parents=True)
        for name in (*names, "linux-image-7.2_1_amd64.deb"):
            (made.build.parent / name).touch()
        error = OSError(errno.EXDEV, "Invalid cross-device link")
        with mock.patch.object(os, "rename", side_effect=error):
            deb.take(made, self.top / "out")
        self.assertEqual({path.name for path in (self.top / "out").iterdir()}, {*names})

    def test_a_broken_package_is_named(self) -> None:
        (self.top / "bad.deb").write_text("no package")
        with self.assertRaisesRegex(Failure, "bad.deb is no package"):
            deb.contents(self.top / "bad.deb")
