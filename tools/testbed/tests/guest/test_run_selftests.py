# SPDX-License-Identifier: GPL-2.0
"""Tests of the guest's runner of kernel selftests, on a small installation of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "guest/run_selftests.py"

# The parts of the kernel's libraries that the runner uses.
KSFT = """
KSFT_MAIN_NAME = "nothing"
def ktap_result(ok, cnt=1, case_name="", comment=""):
    print("ok" if ok else "not ok", cnt, f"{KSFT_MAIN_NAME}.{case_name}")
def run(*cases):
    for number, case in enumerate(cases, 1):
        ktap_result(case(), number, case.__name__)
"""
COMMON = """
import os
from pathlib import Path
from . import ksft, utils, ynl
print("# the common library is imported")
"""
UTILS = """
class cmd:
    def __init__(self, comm, shell=None, fail=True, timeout=20):
        print("time", timeout, shell, fail, self.process())
    def process(self, terminate=True, timeout=20):
        return terminate, timeout
"""
YNL = """
from pathlib import Path
SPEC_PATH = Path(__file__).parents[3] / "specs"
import net.lib.ynl.pyynl.lib.nlspec
"""
NLSPEC = """
class pyyaml:
    @staticmethod
    def load(stream, Loader):
        print("# parsed:", Path(stream.name).name)
        return {"name": [Path(stream.name).stem]}
from pathlib import Path
class SpecFamily:
    _yaml_loader = None
    def __init__(self, path):
        with open(path) as stream:
            self.yaml = pyyaml.load(stream, Loader=self._yaml_loader)
"""
FOLDER = """
from net.lib.py import ksft
WHERE = {where!r}
print("# the library of", WHERE, "is imported")
"""


class Installation:
    """An installed kselftest, and the runner."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kmsg = root / "kmsg"
        self.sysrq = root / "sysrq"
        for file in (self.kmsg, self.sysrq):
            file.touch()
        self.write("net/lib/py/__init__.py", COMMON)
        self.write("net/lib/py/ksft.py", KSFT)
        self.write("net/lib/py/utils.py", UTILS)
        self.write("net/lib/py/ynl.py", YNL)
        self.write("net/lib/ynl/pyynl/lib/nlspec.py", NLSPEC)
        self.write("specs/netdev.yaml", "")
        for where in ("a", "b"):
            self.write(f"{where}/lib/py/__init__.py", FOLDER.format(where=where))

    def write(self, name: str, text: str) -> None:
        """A file below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def command(self, *words: str) -> list[str]:
        """The runner's command line."""
        return [
            *(sys.executable, str(RUNNER), "--root", str(self.root)),
            *("--kmsg", str(self.kmsg), "--sysrq", str(self.sysrq), *words),
        ]

    def run(self, *words: str, lines: str = "") -> tuple[int, list[str]]:
        """Exit code and output."""
        done = subprocess.run(
            self.command(*words), input=lines, capture_output=True, text=True, timeout=60,
            check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_marks_variables_and_arguments(installed: Installation) -> None:
    installed.write("a/one.py", "import os, sys\nprint(os.environ['X'], sys.argv[1:])\n")
    code, lines = installed.run("a/one.py X='1 2' -t case")
    assert code == 0
    begin = lines.index("# begin a/one.py")
    assert lines[begin + 1 :][-3:-1] == ["1 2 ['-t', 'case']", "# end a/one.py 0"]
    assert installed.kmsg.read_text().splitlines() == [
        "skbulk: begin a/one.py",
        "skbulk: end a/one.py",
    ]


def test_programs_come_from_standard_input_as_they_are_named(installed: Installation) -> None:
    installed.write("a/one.py", "print('here')\n")
    with subprocess.Popen(
        installed.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdin and runner.stdout
        for _ in range(2):
            runner.stdin.write("a/one.py\n")
            runner.stdin.flush()
            # The runner must not wait for the second line.
            for line in runner.stdout:
                if line.startswith("# end"):
                    break
        runner.stdin.close()
        assert runner.wait(20) == 0


def test_programs_come_from_a_variable(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed.write("a/one.py", "print('here')\n")
    monkeypatch.setenv("PROGRAMS", "a/one.py\na/one.py")
    code, lines = installed.run()
    assert code == 0
    assert lines.count("here") == 2


def test_a_program_has_no_standard_input(installed: Installation) -> None:
    installed.write("a/one.py", "import sys\nprint(repr(sys.stdin.read()))\n")
    code, lines = installed.run(lines="a/one.py\na/one.py\n")
    assert code == 0
    assert lines.count("''") == 2


def test_libraries_and_specifications_are_read_once(installed: Installation) -> None:
    program = """
from lib.py import WHERE, ksft
from net.lib.ynl.pyynl.lib.nlspec import SpecFamily
from net.lib.py.ynl import SPEC_PATH
family = SpecFamily(SPEC_PATH / "netdev.yaml")
family.yaml["name"] += ["changed"]
print(WHERE, SpecFamily(SPEC_PATH / "netdev.yaml").yaml)
def first(): return True
def second(): return False
ksft.run(first, second)
"""
    for folder in ("a", "b"):
        installed.write(f"{folder}/one.py", program)
    code, lines = installed.run("a/one.py", "b/one.py", "a/one.py")
    assert code == 0
    assert lines.count("# the common library is imported") == 1
    assert lines.count("# parsed: netdev.yaml") == 1
    assert lines.count("# the library of a is imported") == 1
    assert lines.count("# the library of b is imported") == 1
    assert [line for line in lines if line.endswith("}")] == [
        f"{where} {{'name': ['netdev']}}" for where in "aba"
    ]
    assert lines.count("ok 1 one.first") == 3
    assert lines.count("not ok 2 one.second") == 3
    # Each case once, however many programs ran before.
    marks = [line for line in installed.kmsg.read_text().splitlines() if " case " in line]
    assert marks[-2:] == ["skbulk: case a/one.py first", "skbulk: case a/one.py second"]
    assert len(marks) == 6


def test_commands_have_time_on_a_slow_machine(installed: Installation) -> None:
    installed.write("a/one.py", "from net.lib.py.utils import cmd\ncmd('x')\ncmd('x', timeout=1)\n")
    _, lines = installed.run("a/one.py")
    assert "time 120 None True (True, 120)" in lines
    assert "time 1 None True (True, 120)" in lines


def test_a_library_that_cannot_be_imported_is_for_the_program_to_report(
    installed: Installation,
) -> None:
    installed.write("c/lib/py/__init__.py", "import sys\nsys.exit(4)\n")
    installed.write("c/one.py", "from lib.py import ksft\n")
    code, lines = installed.run("c/one.py")
    assert code == 0
    assert "# end c/one.py 4" in lines


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("raise ValueError('no')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 128 + 11),
    ],
)
def test_how_a_program_ends(installed: Installation, text: str, code: int) -> None:
    installed.write("a/one.py", text + "\n")
    result, lines = installed.run("a/one.py")
    assert result == 1
    assert f"# end a/one.py {code}" in lines


def test_an_exception_is_told_with_its_place(installed: Installation) -> None:
    installed.write("a/one.py", "raise ValueError('no')\n")
    _, lines = installed.run("a/one.py")
    assert "# ValueError: no" in lines
    assert any("a/one.py" in line and "line 1" in line for line in lines)


def test_the_end_of_an_interpreter_comes_to_each_program(installed: Installation) -> None:
    text = "import atexit, sys\natexit.register(print, 'cleaned up', file=sys.stderr)\n"
    installed.write("a/one.py", text)
    _, lines = installed.run("a/one.py", "a/one.py")
    assert lines.count("cleaned up") == 2


def test_a_shell_program(installed: Installation) -> None:
    installed.write("a/one.sh", 'echo "$X $1 $PWD"\nexit 4\n')
    code, lines = installed.run("a/one.sh X=x word")
    assert code == 0
    assert f"x word {installed.root}/a" in lines
    assert "# end a/one.sh 4" in lines


def test_a_program_that_is_not_there(installed: Installation) -> None:
    code, lines = installed.run("a/none.py")
    assert code == 1
    assert any(line.startswith("not ok 1 none # there is no ") for line in lines)


def test_one_that_hangs_is_ended_and_cleans_up(installed: Installation) -> None:
    installed.write(
        "a/one.py",
        "import signal, sys, time\n"
        "def end(*_):\n    print('cleaning up')\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('hanging', flush=True)\ntime.sleep(60)\n",
    )
    began = time.monotonic()
    code, lines = installed.run("a/one.py TIME_LIMIT=0.5", "a/one.py TIME_LIMIT=0.5")
    assert time.monotonic() - began < 20
    assert code == 1
    assert lines.count("cleaning up") == 2
    assert lines.count("# end a/one.py 124") == 2
    assert installed.sysrq.read_text() == "ww"


def test_what_a_program_leaves_behind_is_ended(installed: Installation) -> None:
    installed.write(
        "a/one.py",
        "import subprocess\nprint('left', subprocess.Popen(['sleep', '60']).pid, flush=True)\n",
    )
    _, lines = installed.run("a/one.py")
    (left,) = [int(line.split()[1]) for line in lines if line.startswith("left ")]
    for _ in range(100):
        try:
            state = Path(f"/proc/{left}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the process is still there")
