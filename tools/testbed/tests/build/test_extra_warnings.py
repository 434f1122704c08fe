# SPDX-License-Identifier: GPL-2.0
"""The warnings of W=1, of some files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.build import extra_warnings
from testbed.host.ui import Failure

MAKEFILE = """\
KBUILD_CFLAGS += -Wunused
#
# W=1 - warnings which may be relevant and do not occur too often
#
ifneq ($(findstring 1, $(KBUILD_EXTRA_WARN)),)

KBUILD_CFLAGS += -Wmissing-include-dirs

else

# Suppress them by using -Wno... except for W=1.
KBUILD_CFLAGS += -Wno-unused-but-set-variable
KBUILD_CFLAGS += $(call cc-option, -Wno-format-overflow)

endif

#
# W=2 - warnings which occur quite often but may still be relevant
#
KBUILD_CFLAGS += -Wno-shadow
"""
SAVED = (
    "savedcmd_lib/x.o := clang-22 -Wp,-MMD,lib/.x.o.d -DNAME='\"x y\"' -Wno-shadow "
    "-Wno-unused-but-set-variable -c -o lib/x.o /w/tree/lib/x.c ; objtool lib/x.o\n"
)


def test_the_flags_of_the_level() -> None:
    on, off = extra_warnings.flags(MAKEFILE)
    assert on == ["-Wmissing-include-dirs"]
    assert off == {"-Wno-unused-but-set-variable", "-Wno-format-overflow"}
    with pytest.raises(Failure, match="W=1"):
        extra_warnings.flags("KBUILD_CFLAGS += -Wall\n")


def test_the_command_of_the_build_without_its_output() -> None:
    on, off = extra_warnings.flags(MAKEFILE)
    assert extra_warnings.command(SAVED, on, off) == [
        "clang-22", '-DNAME="x y"', "-Wno-shadow", "-Wmissing-include-dirs",
        "-fsyntax-only", "/w/tree/lib/x.c",
    ]  # fmt: skip
    assert extra_warnings.command("savedcmd_rust/x.o := rustc -o x.o x.rs\n", on, off) is None


def test_a_header_is_named_once() -> None:
    text = (
        "In file included from /w/tree/lib/x.c:3:\n"
        "/w/tree/include/linux/queue.h:12:1: warning: a shift is too far [-Wshift]\n"
    )
    expected = ["in include/linux/queue.h:12: a shift is too far [-Wshift]"]
    assert extra_warnings.parse(text + text) == expected


def test_objects_are_compiled_with_the_flags(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/Makefile.warn").write_text(MAKEFILE)
    compiler = tmp_path / "clang-22"
    compiler.write_text('#!/bin/sh\necho "/w/tree/lib/x.c:1:1: warning: $*" >&2\n')
    compiler.chmod(0o755)
    (tmp_path / ".x.o.cmd").write_text(SAVED.replace("clang-22", str(compiler), 1))
    found = extra_warnings.of(tmp_path, tmp_path, ["x.o"])
    assert len(found) == 1
    assert "-Wmissing-include-dirs" in found[0]
    assert "unused-but-set" not in found[0]
    compiler.write_text("#!/bin/sh\necho 'unknown argument' >&2\nexit 1\n")
    with pytest.raises(Failure, match="does not compile"):
        extra_warnings.of(tmp_path, tmp_path, ["x.o"])
