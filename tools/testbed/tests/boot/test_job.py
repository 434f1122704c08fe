# SPDX-License-Identifier: GPL-2.0
"""The leavings of a run: result files and folders, logs of earlier runs, an exit code."""

from __future__ import annotations

import io
import os
import shutil
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

    def test_what_is_no_file_of_the_guest_is_left_out(self) -> None:
        share = self.top / "results"
        share.mkdir()
        secret = self.top / "secret"
        secret.write_text("secret")
        (share / "link").symlink_to(secret)
        (share / "folder").symlink_to(self.top)
        os.mkfifo(share / "pipe")
        (share / "good").write_text("text")
        self.assertEqual(job._collect(self.env, share), {"good": "text"})
        self.assertEqual([one.name for one in (self.env.out / "results").iterdir()], ["good"])

    def test_results_have_an_end(self) -> None:
        share = self.top / "results"
        share.mkdir()
        for name in "ab":
            (share / name).write_bytes(bytes(1000))
        with (
            mock.patch.object(job, "_MOST", 1000),
            mock.patch("sys.stdout", io.StringIO()) as said,
        ):
            job._collect(self.env, share)
        self.assertEqual([one.name for one in (self.env.out / "results").iterdir()], ["a"])
        self.assertIn("'b' on, is left out", said.getvalue())

    def follow(self, script: str, timeout: float = 20.0) -> job.Outcome:
        """The outcome of a program in place of a machine; OUT and RESULT are its files."""
        folder = self.top / "run"
        (folder / "job/results").mkdir(parents=True)
        console = self.env.logs / "console"
        one = job.Job(None, "none", timeout=timeout)
        boot = job.Run(self.env, one, console, folder, None)
        words = {"OUT": str(boot.out), "RESULT": str(boot.result), "PATH": os.environ["PATH"]}
        return boot.follow(["bash", "-c", script], "the VM", None, None, words)

    def test_output_and_exit_code_come_back(self) -> None:
        found = self.follow("echo hello >$OUT; echo exit 7 >$RESULT; echo console")
        self.assertEqual((found.code, found.output, found.console), (7, "hello\n", "console\n"))

    def test_files_in_place_of_the_channels_are_not_opened(self) -> None:
        for name in ("OUT", "RESULT"):
            with self.subTest(name), self.assertRaises(Failure) as caught:
                self.follow(f"rm ${name}; mkfifo ${name}; sleep 60", timeout=1.0)
            self.assertIn("no end after 1 s", str(caught.exception))
            shutil.rmtree(self.top / "run")

    def test_output_without_an_end_ends_the_run(self) -> None:
        with mock.patch.object(job, "_MOST", 1 << 16), self.assertRaises(Failure) as caught:
            self.follow("yes | head -c 100000 >$OUT; sleep 60")
        self.assertIn("printed more than", str(caught.exception))

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
