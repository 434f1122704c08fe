# SPDX-License-Identifier: GPL-2.0
"""Tests of the runner of the compile-fail suite; rustc is not needed."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from testbed.build.compile_fail import (
    Expectation,
    expectation,
    find_command,
    judge,
    put_right,
)
from testbed.host.ui import Failure

SAVED = (
    "savedcmd_drivers/net/x.o := OBJTREE=/build RUST_MODFILE=drivers/net/x rustc "
    "--edition=2021 -Dwarnings @./include/generated/rustc_cfg "
    "-Zcrate-attr='feature(asm_goto,used_with_arg)' --extern kernel --crate-type rlib "
    "-L ./rust/ --out-dir drivers/net/ --emit=dep-info=drivers/net/.x.o.d "
    "--emit=obj=drivers/net/x.o ../src/drivers/net/x.rs ; ./tools/objtool/objtool x.o\n"
    "\n"
    "source_drivers/net/x.o := ../src/drivers/net/x.rs\n"
)


def diagnostic(code: str | None, message: str, level: str = "error") -> str:
    """A line as rustc writes it."""
    return json.dumps({"level": level, "message": message, "code": code and {"code": code}})


class Header(unittest.TestCase):
    def test_reads_what_is_expected(self) -> None:
        self.assertEqual(
            expectation("//@ error: E0382 use of moved\n", "a"),
            Expectation(code="E0382", text="use of moved"),
        )
        self.assertEqual(
            expectation("//@ error: none may not live\n", "a"),
            Expectation(code=None, text="may not live"),
        )

    def test_refuses_what_it_cannot_read(self) -> None:
        for source in ("", "fn f() {}", "//@ error", "//@ error: E03", "//@ error: none"):
            with self.subTest(source), self.assertRaises(Failure) as caught:
                expectation(source, "case.rs")
            self.assertIn("case.rs", str(caught.exception))


class PutRight(unittest.TestCase):
    def test_replaces_and_removes_what_is_marked(self) -> None:
        source = "//@ error: E0382\nfn f() {\n    //~ b();\n    a();\n    //~\n    c();\n}\n"
        self.assertEqual(
            put_right(source, "a").replace(" ", ""),
            "//@error:E0382\nfnf(){\n//~b();\nb();\n//~\n\n}\n",
        )

    def test_a_case_without_a_misuse_is_none(self) -> None:
        for source in ("fn f() {}", "a\n//~ b", "a\n//~ b\n\n", "//~\n//~\na();\n"):
            with self.subTest(source), self.assertRaises(Failure) as caught:
                put_right(source, "case.rs")
            self.assertIn("case.rs", str(caught.exception))


class Flags(unittest.TestCase):
    def setUp(self) -> None:
        self.build = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.saved = self.build / "drivers/net/.x.o.cmd"
        self.saved.parent.mkdir(parents=True)

    def test_takes_the_flags_and_leaves_inputs_and_outputs(self) -> None:
        for text in (SAVED, SAVED.replace(" rustc ", " clippy-driver ")):
            self.saved.write_text(text)
            self.assertEqual(
                find_command(self.build, Path("/src")),
                ["env", "RUSTC_BOOTSTRAP=1", "SRCTREE=/src", "OBJTREE=/build",
                 "RUST_MODFILE=drivers/net/x", "rustc", "--edition=2021",
                 "@./include/generated/rustc_cfg",
                 "-Zcrate-attr=feature(asm_goto,used_with_arg)", "--extern", "kernel",
                 "--crate-type", "rlib", "-L", "./rust/"],
            )  # fmt: skip

    def test_other_commands_are_none(self) -> None:
        for text in ("savedcmd_a.o := clang -c a.c\n", SAVED.replace("--extern kernel", ""), ""):
            self.saved.write_text(text)
            with self.assertRaisesRegex(Failure, "no driver written in Rust"):
                find_command(self.build, Path("/src"))


class Judgement(unittest.TestCase):
    expected = Expectation(code="E0382", text="moved")
    moved = diagnostic("E0382", "use of moved value")

    def test_the_expected_error_is_right(self) -> None:
        warning = diagnostic("unused", "unused", "warning")
        last = diagnostic(None, "aborting due to 1 previous error")
        answer = "\n".join([warning, self.moved, "not json", last])
        self.assertIsNone(judge(self.expected, 1, answer))

    def test_anything_else_is_wrong(self) -> None:
        for code, answer, why in (
            (0, "", "it compiles"),
            (1, diagnostic("E0425", "cannot find"), "expected only E0382"),
            (1, self.moved + "\n" + diagnostic("E0425", "cannot find"), "expected only E0382"),
            (1, diagnostic("E0382", "other words"), "no message contains"),
            (1, diagnostic(None, "moved"), "expected only E0382"),
            (101, "thread 'rustc' panicked", "status 101"),
        ):
            with self.subTest(why):
                self.assertIn(why, judge(self.expected, code, answer) or "right")

    def test_the_control_must_compile(self) -> None:
        self.assertIsNone(judge(None, 0, diagnostic("unused", "unused", "warning")))
        self.assertIn("it must compile", judge(None, 1, self.moved) or "right")
