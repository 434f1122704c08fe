# SPDX-License-Identifier: GPL-2.0
"""A build that is killed at any point leaves a folder in which the next one comes out right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from testbed.host.proc import Failed
from testbed.host.torn import mended

_COUNT = 12
# As objtool does, the rule goes on writing to a target that make takes for finished by its time.
_MAKEFILE = f"""
all: {" ".join(f"{number}.o" for number in range(_COUNT))}
%.o: %.c
\t@cp $< $@; sleep 0.05; echo end >>$@
"""


def _make(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["make", "-s", "-j2", "-C", str(folder)], start_new_session=True)


@pytest.mark.parametrize("seed", range(10))
def test_a_build_that_was_killed_is_finished_by_the_next_one(tmp_path: Path, seed: int) -> None:
    (tmp_path / "Makefile").write_text(_MAKEFILE)
    for number in range(_COUNT):
        (tmp_path / f"{number}.c").write_text(f"{number}\n")
        os.utime(tmp_path / f"{number}.c", (0, 0))
    chance = random.Random(seed)
    with pytest.raises(KeyboardInterrupt), mended(tmp_path):
        child = _make(tmp_path)
        # Until it has begun, however slow the machine, and a moment longer.
        while not list(tmp_path.glob("*.o")):
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.2))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise KeyboardInterrupt
    with mended(tmp_path):
        assert _make(tmp_path).wait() == 0
    texts = [(tmp_path / f"{number}.o").read_text() for number in range(_COUNT)]
    assert texts == [f"{number}\nend\n" for number in range(_COUNT)]


def test_all_is_kept_of_a_build_that_ended_by_itself(tmp_path: Path) -> None:
    with pytest.raises(Failed), mended(tmp_path):
        (tmp_path / "one.o").touch()
        raise Failed("a compiler's error")
    with mended(tmp_path):
        assert (tmp_path / "one.o").exists()
    with mended(tmp_path):
        assert (tmp_path / "one.o").exists()


def test_what_was_written_long_before_is_kept(tmp_path: Path) -> None:
    old = tmp_path / "old.o"
    with pytest.raises(KeyboardInterrupt), mended(tmp_path):
        old.touch()
        os.utime(old, (1, 1))
        (tmp_path / "link").symlink_to("nowhere")
        raise KeyboardInterrupt
    with mended(tmp_path):
        assert old.exists() and (tmp_path / "link").is_symlink()
