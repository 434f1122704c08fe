# SPDX-License-Identifier: GPL-2.0
"""doctor finds the problems of make demo, and names the way out."""

from __future__ import annotations

import functools
import http.server
import re
import threading

from sandbox import CLONE, SandboxTest


class DoctorTest(SandboxTest):
    def serve(self, release: bool) -> str:
        """A mirror of one file, or of none."""
        if release:
            (self.top / "web/dists/trixie").mkdir(parents=True)
            (self.top / "web/dists/trixie/Release").write_text("Suite: stable\n")
        handler = functools.partial(_Quiet, directory=str(self.top / "web"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    def test_a_fresh_machine_is_good(self) -> None:
        done = self.run_script("$DOCTOR", SKBULK_MIRROR=self.serve(release=True))
        self.assertRegex(done.stdout, r"good +Debian mirror")
        self.assertRegex(done.stdout, r"good +mount namespaces")

    def test_no_mirror(self) -> None:
        done = self.run_script("$DOCTOR")
        self.assertRegex(done.stdout, r"missing +Debian mirror .*SKBULK_MIRROR")
        self.assert_fails(done, "make demo cannot run")

    def test_a_mirror_that_does_not_answer(self) -> None:
        done = self.run_script("$DOCTOR", SKBULK_MIRROR=self.serve(release=False))
        self.assertRegex(done.stdout, r"missing +Debian mirror +an answer for trixie")
        self.assert_fails(done)

    def test_a_root_that_is_there_needs_no_mirror(self) -> None:
        done = self.run_in_root("$DOCTOR")
        self.assertRegex(done.stdout, r"good +build root")
        self.assertNotIn("Debian mirror", done.stdout)

    def test_no_namespaces(self) -> None:
        done = self.run_script("setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin $DOCTOR")
        self.assertRegex(done.stdout, r"missing +mount namespaces .*--privileged")
        self.assert_fails(done)

    def test_a_small_disk(self) -> None:
        done = self.run_script("mount -t tmpfs -o size=20M small $CACHE\n$DOCTOR")
        self.assertRegex(done.stdout, r"missing +disk: 0 GB free +needs 12 GB .*XDG_CACHE_HOME")
        self.assert_fails(done)

    def test_a_small_place_for_shared_memory(self) -> None:
        done = self.run_script("mount -t tmpfs -o size=64M small /dev/shm\n$DOCTOR")
        self.assertRegex(done.stdout, r"small +/dev/shm: 64 MB free +needs \d+ MB .*--shm-size")

    def test_every_package_of_the_build_root_is_looked_for(self) -> None:
        """With nothing but doctor's own tools, each package with a command is missing."""
        text = (CLONE / "tools/packages").read_text()
        rows = [line.split() for line in text.splitlines() if line and line[0] != "#"]
        self.assertGreater(len(rows), 60)
        own = ["awk", "bash", "cat", "df", "dirname", "grep", "head", "id", "mktemp", "rm", "sed",
               "sort", "uname", "unshare"]  # fmt: skip
        done = self.run_script(
            f"for tool in {' '.join(own)}; do ln -s $(command -v $tool) $TOP/bin/; done\n"
            "mount -t tmpfs sandbox /usr/sbin; PATH=$TOP/bin; bash $DOCTOR || true"
        )
        for package, *_, proof in rows:
            if proof[0] not in "-/" and proof not in own:
                self.assertRegex(done.stdout, rf"missing +{re.escape(package)} ")

    def test_help_and_wrong_options(self) -> None:
        done = self.run_script("$DOCTOR --help")
        self.assert_succeeds(done, "doctor --host")
        done = self.run_script("$DOCTOR --hots")
        self.assertEqual(done.returncode, 2)
        self.assert_fails(done, "there is no option --hots")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing: the test's output is for failures."""
