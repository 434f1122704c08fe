# SPDX-License-Identifier: GPL-2.0
"""A place to run tools/buildroot and doctor in: mounts, home and PATH of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

CLONE = Path(__file__).resolve().parents[4]
BUILDROOT = CLONE / "tools/buildroot"
DOCTOR = CLONE / "tools/testbed/doctor"

# A complete build root without Debian's packages: this machine's own /usr and /etc.
_FAKE_ROOT = """
mkdir -p "$CACHE/skbulk" && root=$("$BUILDROOT" path)
mkdir -p "$root"/{usr,etc,opt,srv,var,proc,sys,dev,tmp,run,root,home,mnt}
for name in usr etc; do
    mount --bind /$name "$root/$name"
    # These belong to this machine: no test may change them.
    mount -o remount,bind,ro "$root/$name"
done
for name in bin sbin lib lib64; do ln -s usr/$name "$root/$name"; done
touch "$root/.skbulk-complete"
"""


class SandboxTest(unittest.TestCase):
    """Scripts in a mount namespace whose /etc/apt, /opt and /srv are the test's own."""

    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="skbulk-door-")))
        self.top.chmod(0o755)
        self.apt = self.top / "apt"
        (self.apt / "sources.list.d").mkdir(parents=True)
        for name in ("home", "cache", "bin", "clone"):
            (self.top / name).mkdir()

    def program(self, name: str, text: str) -> None:
        """Put a program in front of the PATH."""
        path = self.top / "bin" / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_script(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a bash script; its variables name the tools and places of the test."""
        words = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                 "--kill-child"]  # fmt: skip
        if os.geteuid() != 0:
            words += ["--user", "--map-root-user"]
        # The clone may lie below one of the folders that the test replaces.
        clone = self.top / "clone"
        prelude = (
            f"set -e; mount --bind {self.apt} /etc/apt; mount --bind {CLONE} {clone}\n"
            "for place in /opt /srv /usr/local /usr/src; do mount -t tmpfs sandbox $place; done\n"
        )
        environment = {
            "PATH": f"{self.top}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.top / "home"),
            "XDG_CACHE_HOME": str(self.top / "cache"),
            "CACHE": str(self.top / "cache"),
            "TOP": str(self.top),
            "CLONE": str(clone),
            "BUILDROOT": str(clone / BUILDROOT.relative_to(CLONE)),
            "DOCTOR": str(clone / DOCTOR.relative_to(CLONE)),
            "LANG": "C.UTF-8",
            **variables,
        }
        return subprocess.run(
            [*words, "bash", "-c", prelude + script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            # None hangs; a busy machine is slow.
            timeout=600,
            check=False,
        )

    def run_in_root(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The same, where a build root exists."""
        return self.run_script(_FAKE_ROOT + script, **variables)

    def assert_fails(self, done: subprocess.CompletedProcess[str], *parts: str) -> None:
        """It failed, printed these texts, and named no missing log."""
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for part in parts:
            self.assertIn(part, done.stdout)
        for line in done.stdout.splitlines():
            if "log: " in line:
                log = Path(line.split("log: ")[1])
                self.assertTrue(log.exists(), f"{log} is named and does not exist")

    def assert_succeeds(self, done: subprocess.CompletedProcess[str], *parts: str) -> None:
        """It succeeded and printed these texts."""
        self.assertEqual(done.returncode, 0, done.stdout)
        for part in parts:
            self.assertIn(part, done.stdout)
