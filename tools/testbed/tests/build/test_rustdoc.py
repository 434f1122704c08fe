# SPDX-License-Identifier: GPL-2.0
"""rustdoc reads a crate as the build has compiled it."""

import pytest

from testbed.build import rustdoc


@pytest.mark.parametrize("compiler", ["rustc", "/usr/bin/clippy-driver"])
def test_the_command_of_a_crate(compiler: str) -> None:
    """Without what it wrote, and what followed."""
    saved = (
        f"savedcmd_rust/kernel.o := OBJTREE=/b {compiler} --edition=2021 -Zbinary_dep_depinfo=y "
        "--emit=metadata=rust/x.rmeta --extern ffi /t/lib.rs --sysroot=/dev/null ; llvm-link x\n"
    )
    assert rustdoc.command(saved) == [
        "env", "OBJTREE=/b", "RUSTC_BOOTSTRAP=1", "rustdoc", "--check", "-Zunstable-options",
        "--error-format=short", "--edition=2021", "--extern", "ffi", "/t/lib.rs",
        "--sysroot=/dev/null",
    ]  # fmt: skip


def test_a_command_of_another_compiler_is_none() -> None:
    assert rustdoc.command("savedcmd_x.o := clang -c x.c\n") == []


def test_warnings_are_found() -> None:
    output = (
        "rust/kernel/net/x.rs:7:23: warning: unresolved link to `A`: no item named `A` in scope\n"
        "/cache/tree/rust/kernel/y.rs:8:1: error[E0433]: unresolved\n"
        "warning: 2 warnings emitted\n"
    )
    assert rustdoc.parse(output) == [
        "in rust/kernel/net/x.rs:7: unresolved link to `A`: no item named `A` in scope",
        "in rust/kernel/y.rs:8: unresolved",
    ]
