# SPDX-License-Identifier: GPL-2.0
"""make fuzz: the fuzzer's words, its figures, and how one of its inputs is repeated."""

from pathlib import Path

from testbed import settings
from testbed.boot import inside
from testbed.verbs import fuzz

STATS = """start_time        : 1764466000
run_time          : 200
execs_done        : 16412
corpus_count      : 132
saved_crashes     : 1
saved_hangs       : 0
edges_found       : 1226
command_line      : afl-fuzz -i a : b
"""


def test_the_fuzzer_ends_by_itself_and_has_the_seed_that_was_asked_for() -> None:
    words = [str(word) for word in fuzz.command(Path("/c"), Path("/o"), "0.4", "7")]
    assert words[:5] == ["afl-fuzz", "-i", "/c", "-o", "/o"]
    assert words[words.index("-V") + 1] == "1"
    assert words[words.index("-s") + 1] == "7"
    assert words[-1] == "--"
    assert "-s" not in fuzz.command(Path("/c"), Path("/o"), "60", "")


def test_figures_are_those_of_all_runs() -> None:
    now = fuzz.stats(STATS)
    assert now["command_line"] == "afl-fuzz -i a : b"
    assert fuzz.summary(now) == (
        "16,412 executions in 200 s, 82/s; 1226 edges, 132 inputs; 1 crashes, 0 hangs"
    )
    assert fuzz.summary({}) == ""


def test_what_was_found_is_repeated_by_one_command(tmp_path: Path) -> None:
    for name in ("crashes/id:000000,sig:06", "crashes/README.txt", "hangs/id:000001", "queue/id:0"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = fuzz.found(tmp_path)
    assert [(kind, path.name) for kind, path in found] == [
        ("crash", "id:000000,sig:06"),
        ("hang", "id:000001"),
    ]
    values = settings.read("fuzz", {"ENTRY": "data", "DRIVER": "c"})
    assert fuzz.repeat(values.text, Path("/o/id:000000,sig:06")) == (
        "make fuzz CONFIG=perf DRIVER=c ENTRY=data INPUT=/o/id:000000,sig:06"
    )


def test_the_entries_are_those_of_the_kernel() -> None:
    assert tuple(settings.VARIABLES["ENTRY"].kind.split("|")) == inside.ENTRIES
