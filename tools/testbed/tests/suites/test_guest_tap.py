# SPDX-License-Identifier: GPL-2.0
"""Tests of what the end-to-end tests rely on: verdicts, the time limit, dmesg."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

GUEST_TESTS = Path(__file__).resolve().parents[2] / "guest" / "tests"


class TapTest(unittest.TestCase):
    """Small scripts on top of tap.sh."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_script(self, body: str, guarded: bool = True) -> tuple[int, list[str]]:
        """Runs a test script; returns its exit code and its lines."""
        script = self.folder / "case.sh"
        guard = 'guard "$@"' if guarded else ""
        script.write_text(f'set -u\nTEST=case\n. "{GUEST_TESTS}/tap.sh"\n{guard}\n{body}\n')
        done = subprocess.run(
            ["bash", str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=30,
            check=False,
            env={"PATH": os.environ["PATH"], "TIME_LIMIT": "2", "SYSRQ": "/dev/null"},
        )
        return done.returncode, done.stdout.splitlines()

    def test_checks_that_pass(self) -> None:
        code, lines = self.run_script("check one true\nsame two a a\nverdict three ''")
        self.assertEqual(
            lines, ["ok 1 - case: one", "ok 2 - case: two", "ok 3 - case: three", "1..3"]
        )
        self.assertEqual(code, 0)

    def test_checks_that_fail(self) -> None:
        code, lines = self.run_script(
            "check one false\nsame two a b\nverdict three 'line 1\nline 2'\nok four"
        )
        self.assertEqual(
            lines,
            [
                "not ok 1 - case: one # 'false' failed: ",
                "not ok 2 - case: two # expected 'a', got 'b'",
                "not ok 3 - case: three # line 1; line 2",
                "ok 4 - case: four",
                "1..4",
            ],
        )
        self.assertEqual(code, 1)

    def test_a_script_that_dies_fails(self) -> None:
        code, lines = self.run_script('ok one\necho "$not_set"')
        self.assertEqual(code, 1)
        self.assertIn("runs to its end", lines[1])

    def test_a_script_without_checks_fails(self) -> None:
        code, lines = self.run_script("true")
        self.assertEqual(code, 1)
        self.assertTrue(lines[0].startswith("not ok 1"), lines)

    def test_skipping_is_no_failure(self) -> None:
        code, lines = self.run_script("skip one 'not here'")
        self.assertEqual((code, lines[0]), (0, "ok 1 - case: one # SKIP not here"))

    def test_a_hang_is_ended(self) -> None:
        begin = time.monotonic()
        code, lines = self.run_script("ok one\nsleep 20")
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(code, 1)
        self.assertIn("it hangs", lines[-1])

    def test_deferred_commands_run_last_first_whatever_happens(self) -> None:
        note = self.folder / "note"
        self.run_script(
            f"defer 'echo a >>{note}'\ndefer 'echo b >>{note}'\ncheck one false\nexit 1"
        )
        self.assertEqual(note.read_text().split(), ["b", "a"])

    def quiet(self, log: str, exception: str = "") -> bool:
        """Whether quiet is content with a kernel log."""
        (self.folder / "log").write_text(log)
        code, _ = self.run_script(
            f'dmesg() {{ cat "{self.folder}/log"; }}\nquiet it {exception and repr(exception)}'
        )
        return code == 0

    def test_complaints_of_the_kernel_are_found(self) -> None:
        for line in (
            "WARNING: CPU: 0 PID: 1 at net/core/dev.c:1",
            "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
            "WARNING: possible circular locking dependency detected",
            "UBSAN: array-index-out-of-bounds in a.c:1:2",
            "DMA-API: ixgbe 0000:01:00.0: device driver has pending DMA allocations",
            "refcount_t: underflow; use-after-free.",
            "INFO: task ip:77 blocked for more than 120 seconds.",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "BUG: sleeping function called from invalid context at a.c:1",
            "NETDEV WATCHDOG: eth0: transmit queue 0 timed out",
            "rust_kernel: panicked at drivers/x.rs:1:1:",
            "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "unregister_netdevice: waiting for eth0 to become free. Usage count = 2",
            "Oops: general protection fault, maybe for address 0x1: 0000 [#1] SMP",
        ):
            self.assertFalse(self.quiet(f"[ 1.0] fine\n[ 2.0] {line}\n"), line)

    def test_ordinary_messages_are_no_complaints(self) -> None:
        self.assertTrue(
            self.quiet(
                "[ 2.0] ixgbe 0000:01:00.0 eth0: NIC Link is Up 10 Gbps, Flow Control: None\n"
                "[ 2.1] ixgbe 0000:01:00.0: removed PHC on eth0\n"
                "[ 2.2] kmemleak: Kernel memory leak detector initialized\n"
            )
        )

    def test_what_a_case_provokes_may_be_excepted(self) -> None:
        log = "fine\nDMA-API: provoked\n"
        self.assertTrue(self.quiet(log, "DMA-API: provoked"))
        self.assertFalse(self.quiet(log + "WARNING: other\n", "DMA-API: provoked"))


if __name__ == "__main__":
    unittest.main()
