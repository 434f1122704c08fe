# SPDX-License-Identifier: GPL-2.0
"""Functions of programs: a program that the compiler has built to count, from start to table."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.coverage import counters, functions, recorder
from testbed.coverage.flags import CARGO
from testbed.coverage.recorder import Recorder
from testbed.host.ui import Failure
from testbed.settings import child_environment, read

SOURCE = """
struct Pair<T>(T, T);

impl<T: Copy> Pair<T> {
    fn first(&self) -> T { self.0 }
    fn never(&self) -> T { self.1 }
}

fn asked(line: &str) -> usize {
    let twice = |n| 2 * n;
    Pair(twice(line.len()), 0).first()
}

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        println!("{}", if line == "more" { asked(&line) } else { Pair(1, 2).first() });
    }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that calls a function when it is asked for it."""
    source = tmp_path / "tools/nicmodel/cli/main.rs"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    path = tmp_path / "program"
    subprocess.run(
        ["rustc", *CARGO["RUSTFLAGS"].split(), "--edition=2021", "-Adead_code", source, "-o", path],
        env=child_environment(**CARGO), check=True, capture_output=True,
    )  # fmt: skip
    return path


@pytest.fixture
def running(program: Path) -> Iterator[subprocess.Popen[str]]:
    """It runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True) as child:
        yield child
        child.kill()


def ask(child: subprocess.Popen[str], line: str) -> None:
    """One turn of it, which has been counted when it waits for the next."""
    assert child.stdin and child.stdout
    child.stdin.write(f"{line}\n")
    child.stdin.flush()
    child.stdout.readline()
    status = Path(f"/proc/{child.pid}/stat")
    while child.poll() is None and status.read_text().rpartition(") ")[2][0] != "S":
        time.sleep(0.001)


def test_a_program_enters_what_it_calls(
    tmp_path: Path, program: Path, running: subprocess.Popen[str]
) -> None:
    made = Recorder(tmp_path, 1, [program])
    made.follow([running.pid])
    for line in (recorder.BOOT, "more", "less"):
        ask(running, line)
        made.note(line)
    llvm = read("test").internal.get("SKBULK_LLVM", "")
    known = functions.of_files(llvm, [program], tmp_path / "tree", tmp_path)
    assert {one.name for one in known.values()} == {"first", "never", "asked", "main"}
    names = {
        name: sorted({known[one].name for one in entered if one in known})
        for name, entered in recorder.load(tmp_path).items()
    }
    every = {"asked", "first", "main"}
    assert {name: every - {*entered} for name, entered in names.items()} == {
        recorder.BOOT: {"asked"}, "more": set(), "less": {"asked"},
    }  # fmt: skip


def test_counters_that_have_gone_are_a_failure(
    tmp_path: Path, program: Path, running: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a module whose memory was freed."""
    made = Recorder(tmp_path, 1, [program])
    made.follow([running.pid])
    ask(running, "boot")
    made.note(recorder.BOOT)
    for left in ({}, {1: 1}):
        monkeypatch.setattr(counters, "totals", lambda *_, left=left: left)
        with pytest.raises(Failure, match="lost its counters"):
            made.note("next")


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("ixgbe_rust::hw::reset", "reset"),
        ("<ixgbe_rust::tx::Tx<u8> as kernel::net::Ops>::xmit", "xmit"),
        ("kernel::net::map::<fn(u8) -> u16, ixgbe_rust::Port>", "map"),
        ("<kernel::net::Ring<_>>::len", "len"),
    ],
)
def test_the_name_of_a_function_is_its_last_word(demangled: str, name: str) -> None:
    assert functions.readable(demangled) == name
