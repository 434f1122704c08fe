# SPDX-License-Identifier: GPL-2.0
"""The line on which a guest asks for its processor time."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import unittest

from testbed.boot.usage import UsageLine, processor_time


class ProcessorTime(unittest.TestCase):
    """The host's accounting."""

    def test_who_has_gone_has_none(self) -> None:
        with subprocess.Popen(["true"]) as child:
            child.wait()
        with self.assertRaises(OSError) as caught:
            processor_time(child.pid)
        self.assertIn(str(child.pid), str(caught.exception))

    def test_threads_count_while_they_run(self) -> None:
        end = threading.Event()

        def spin() -> None:
            while not end.is_set():
                pass

        thread = threading.Thread(target=spin)
        before = processor_time(os.getpid())
        thread.start()
        # A busy machine takes a while.
        limit, spent = time.monotonic() + 20.0, 0
        while spent <= 100_000_000 and time.monotonic() < limit:
            time.sleep(0.1)
            spent = processor_time(os.getpid()) - before
        end.set()
        thread.join()
        self.assertGreater(spent, 100_000_000)

    def test_work_counts_and_sleep_does_not(self) -> None:
        before = processor_time(os.getpid())
        time.sleep(0.2)
        slept = processor_time(os.getpid()) - before
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        worked = processor_time(os.getpid()) - before - slept
        self.assertLess(slept, 100_000_000)
        self.assertGreater(worked, 150_000_000)


class Line(unittest.TestCase):
    """Questions are answered."""

    def test_each_question_has_an_answer(self) -> None:
        line = UsageLine()
        with socket.socket(fileno=os.dup(line.descriptor)) as guest:
            line.answer_for(os.getpid())
            guest.settimeout(10)
            answers = guest.makefile("rb")
            for _ in range(3):
                guest.sendall(b"?\n")
                self.assertGreater(int(answers.readline()), 0)
            line.close()
            self.assertEqual(answers.readline(), b"")

    def test_it_ends_with_the_guest(self) -> None:
        before = set(threading.enumerate())
        line = UsageLine()
        line.answer_for(os.getpid())
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        line.close()
