# SPDX-License-Identifier: GPL-2.0
"""The leavings of a run: result files and folders, logs of earlier runs, an exit code."""

from __future__ import annotations

import io
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from testbed.boot import job, vm
from testbed.host.ui import Failure
from testbed.verbs import run, shell


class LeavingsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.env: Any = SimpleNamespace(
            clone=self.top, out=self.top / "out", logs=self.top / "out/logs"
        )
        self.env.logs.mkdir(parents=True)

    def test_folders_of_results_are_kept(self) -> None:
        share = self.top / "results"
        (share / "deep/er").mkdir(parents=True)
        (share / "deep/er/file").write_text("text")
        (share / "empty").mkdir()
        self.assertEqual(job._collect(self.env, share), {"deep/er/file": "text"})
        self.assertEqual((self.env.out / "results/deep/er/file").read_text(), "text")
        self.assertTrue((self.env.out / "results/empty").is_dir())

    def test_logs_of_earlier_runs_are_kept(self) -> None:
        for number in range(12):
            log = job.fresh_log(self.env, "console-run")
            self.assertFalse(log.exists())
            log.write_text(f"run {number}")
        texts = [(self.env.logs / f"console-run.{n}.log").read_text() for n in range(1, 10)]
        self.assertEqual(texts, [f"run {number}" for number in range(10, 1, -1)])
        self.assertEqual(len(list(self.env.logs.iterdir())), 10)

    def run_with(self, code: int, complaints: list[str]) -> int:
        machine = mock.MagicMock(log="log")
        machine.run.return_value = SimpleNamespace(code=code, complaints=complaints, breaches=[])
        ready = mock.MagicMock()
        ready.machine.return_value = machine
        made = mock.MagicMock()
        made.return_value.__enter__.return_value = ready
        with (
            mock.patch.object(run, "selftest_of", return_value=None),
            mock.patch.multiple(run, built=made, chosen_driver=mock.DEFAULT,
                                default_config=mock.DEFAULT, job_of=mock.DEFAULT),
            mock.patch("sys.stdout", io.StringIO()) as out,
        ):  # fmt: skip
            returned = run.boot(self.env, "run", self.top / "script", 1.0)
        self.assertEqual(out.getvalue().splitlines()[-1], f"exit code {returned}")
        kept = (self.env.out / "results/exit-code").read_text()
        self.assertEqual(kept, f"{returned}\n")
        return returned

    def test_the_exit_code_is_printed_last_and_kept(self) -> None:
        self.assertEqual(self.run_with(42, []), 42)
        self.assertEqual(self.run_with(0, []), 0)
        self.assertEqual(self.run_with(0, ["kasan: bad"]), 99)
        self.assertEqual(self.run_with(3, ["kasan: bad"]), 3)


class ShellTest(unittest.TestCase):
    def test_commands_come_from_the_pipe(self) -> None:
        with mock.patch("sys.stdout", io.StringIO()):
            self.assertEqual(shell.commands(io.StringIO("dmesg\nexit 3\n")), "dmesg\nexit 3\n")

    def test_nothing_to_read_is_refused(self) -> None:
        with mock.patch("sys.stdout", io.StringIO()), self.assertRaises(Failure) as caught:
            shell.commands(io.StringIO("\n"))
        self.assertIn("| make shell", " ".join(caught.exception.hints))

    def test_without_a_terminal_there_is_no_prompt(self) -> None:
        env: Any = mock.MagicMock()
        env.settings.text.return_value = "600"
        with (
            mock.patch("sys.stdin", io.StringIO("uname -r\n")),
            mock.patch("sys.stdout", io.StringIO()),
            mock.patch.object(shell, "boot", return_value=7) as script,
        ):
            self.assertEqual(shell.main(env), 7)
        self.assertEqual(script.call_count, 1)

    def test_ordinary_words_of_qemu_are_left_out(self) -> None:
        lines = "echo real error >&2; echo x: Could not enable error recovery for the device >&2"
        with mock.patch("sys.stderr", io.StringIO()) as err:
            self.assertEqual(vm._on_terminal(["bash", "-c", f"{lines}; exit 5"]), 5)
        self.assertEqual(err.getvalue(), "real error\n")
