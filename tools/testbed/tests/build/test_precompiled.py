# SPDX-License-Identifier: GPL-2.0
"""Precompiled headers: the same objects, and none where a header could mean something else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from testbed.build import precompiled
from testbed.env import Env

CC = Path(precompiled.__file__).resolve().parents[2] / "precompiled/cc"
# As many files with the same options as make a precompiled header worth its time.
ENOUGH = 4
HEADER = """\
#ifndef COMMON_H
#define COMMON_H
#include "length.h"
#ifdef WORDY
#define LENGTH 2
#else
#define LENGTH 1
#endif
#ifndef pr_fmt
#define pr_fmt(fmt) fmt
#endif
static inline int length(void) { return LENGTH; }
#endif
"""
FUNCTION = "int f(void) { return length(); }\n"


class PrecompiledTest(unittest.TestCase):
    """The wrapper of the compiler."""

    def setUp(self) -> None:
        real = precompiled.compiler(os.environ.get("SKBULK_LLVM", ""))
        if real is None:
            self.skipTest("there is no clang")
        self.real: str = real
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="skbulk-pch-")))
        self.headers = self.top / "headers"
        self.headers.mkdir()
        (self.top / "common.h").write_text(HEADER)
        (self.top / "length.h").touch()

    def compiled(self, name: str, text: str, *words: str, plain: bool = False) -> bytes:
        """Compile a file of the kernel; returns the object."""
        source, made = self.top / name, self.top / f"{name}.o"
        source.parent.mkdir(exist_ok=True)
        source.write_text(text)
        made.unlink(missing_ok=True)
        subprocess.run(
            [self.real if plain else CC, f"-Wp,-MMD,{made}.d", "-I", self.top, "-D__KERNEL__",
             "-O2", f'-DKBUILD_MODNAME="{source.stem}"', *words, "-c", "-o", made, source],
            env={"PATH": os.environ["PATH"], "SKBULK_CC": self.real,
                 "SKBULK_PCH": str(self.headers),
                 "SKBULK_PCH_HEADER": str(self.top / "common.h")},
            check=True,
        )  # fmt: skip
        return made.read_bytes()

    def made(self) -> list[Path]:
        """The precompiled headers so far."""
        return list(self.headers.glob("*.pch"))

    def warm(self, *words: str) -> None:
        """Compile as many files as it takes."""
        for number in range(ENOUGH):
            self.assertEqual(self.made(), [])
            self.compiled(f"warm{number}.c", '#include "common.h"\n', *words)
        self.assertEqual(len(self.made()), 1)

    def both(self, name: str, text: str, *words: str) -> None:
        """The object is the same with and without."""
        self.assertEqual(self.compiled(name, text, *words),
                         self.compiled(name, text, *words, plain=True))  # fmt: skip

    def test_the_object_is_the_same(self) -> None:
        self.warm()
        text = '#define pr_fmt(fmt) KBUILD_MODNAME fmt\n#include "common.h"\n'
        self.both("one.c", f'{text}const char *name = pr_fmt("!");\n{FUNCTION}')
        self.assertFalse((self.headers / "refused").exists())

    def test_it_is_used(self) -> None:
        self.warm()
        # No other way leads to this name.
        self.compiled("two.c", FUNCTION)
        _, *depends = (self.top / "two.c.o.d").read_text().replace("\\\n", " ").split()
        self.assertEqual(depends[0], str(self.top / "two.c"))
        self.assertIn(str(self.top / "length.h"), depends)

    def test_a_macro_for_the_headers(self) -> None:
        self.warm()
        self.both("three.c", f'#define WORDY\n#include "common.h"\n{FUNCTION}')

    def test_a_macro_that_the_headers_do_not_know(self) -> None:
        self.warm()
        # Compiled without the header, this would not find the function.
        self.compiled("seven.c", f'#define WORD\n#include "length.h"\n{FUNCTION}')

    def test_other_options(self) -> None:
        self.warm()
        self.both("four.c", f'#include "common.h"\n{FUNCTION}', "-DWORDY")
        self.assertEqual(len(self.made()), 1)

    def test_a_name_of_its_own(self) -> None:
        self.warm()
        self.both("five.c", f"static long length(void) {{ return 3; }}\n{FUNCTION}")
        self.assertIn("five.c", (self.headers / "refused").read_text())

    def test_a_file_that_is_wrong(self) -> None:
        self.warm()
        with self.assertRaises(subprocess.CalledProcessError):
            self.compiled("six.c", "int f(void) { return none(); }\n", "-Werror")

    def test_other_worlds(self) -> None:
        for number in range(ENOUGH + 1):
            self.compiled(f"boot/{number}.c", '#include "common.h"\n')
            (self.top / "arch").mkdir(exist_ok=True)
            self.compiled(f"arch/um/{number}.c", '#include "common.h"\n')
            self.compiled(f"user{number}.c", '#include "common.h"\n', "-U__KERNEL__", "-fPIC")
        self.assertEqual(self.made(), [])

    def test_the_folder_is_for_one_build_and_the_log_tells_why(self) -> None:
        env = SimpleNamespace(clone=CC.parents[3], llvm=os.environ.get("SKBULK_LLVM", ""))
        log = self.top / "log"
        with precompiled.compilers(cast(Env, env), self.top, log) as variables:
            place = Path(variables["SKBULK_PCH"])
            self.assertEqual(shutil.which(f"clang{env.llvm}", path=variables["PATH"]),
                             str(place / f"bin/clang{env.llvm}"))  # fmt: skip
            self.assertEqual(shutil.which("rustc", path=variables["PATH"]),
                             str(place / "bin/rustc"))  # fmt: skip
            self.assertEqual(variables["SKBULK_CC"], self.real)
            self.assertTrue(Path(variables["SKBULK_PCH_HEADER"]).exists())
            (place / "1.log").write_text("no such file\n")
            (place / "2.log").touch()
            (place / "refused").write_text("a.c\n")
        self.assertFalse(place.exists())
        self.assertEqual(
            log.read_text(),
            "no precompiled header: no such file\nno precompiled header: a.c\n",
        )

    def test_only_the_parser_of_macros_is_not_optimized(self) -> None:
        rustc = str(CC.parent / "rustc")
        for crate, expected in (("syn", "0"), ("kernel", "")):
            done = subprocess.run(
                [rustc, "-O", "--crate-name", crate, "lib.rs"], env={"SKBULK_RUSTC": "echo"},
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            self.assertEqual(done.stdout.partition("-Copt-level=")[2][:1], expected)


if __name__ == "__main__":
    unittest.main()
