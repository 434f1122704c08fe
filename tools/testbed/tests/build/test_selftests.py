# SPDX-License-Identifier: GPL-2.0
"""Tests of the build of the kernel's selftests; no compiler is needed."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from testbed.build.selftests import Selftests, missing

LOG = """\
Makefile:13: excluding iouring tests, liburing not installed or too old
  CC       csum
make[5]: *** [../../lib.mk:225: /build/kselftest/drivers/net/napi_id_helper] Error 1
rsync: [sender] link_stat "/src/tc-testing/action-ebpf" failed: No such file or directory (2)
rsync error: some files/attrs were not transferred (code 23) at main.c(1347) [sender=3.4.1]
make[4]: *** [../lib.mk:175: install] Error 23
Makefile:13: excluding iouring tests, liburing not installed or too old
"""


class Missing(unittest.TestCase):
    """The failed targets of a build."""

    def test_each_is_named_once_with_its_reason(self) -> None:
        self.assertEqual(
            missing(LOG),
            [
                "excluding iouring tests, liburing not installed or too old",
                "/build/kselftest/drivers/net/napi_id_helper could not be built",
                "action-ebpf: No such file or directory",
            ],
        )

    def test_nothing_is_missing_after_a_clean_build(self) -> None:
        self.assertEqual(missing("  CC       csum\n  GEN xdp.h\n"), [])


class Programs(unittest.TestCase):
    """The programs of an installation."""

    def test_those_of_the_list_and_executable_scripts(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "kselftest-list.txt").write_text("net:a.sh\nnet/hw:b.py\nnet/hw:c\n")
            for program, mode in (("b.py", 0o644), ("c", 0o755), ("d.py", 0o755), ("e.sh", 0o644)):
                path = root / "net/hw" / program
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode)
            self.assertEqual(
                Selftests(root).programs("net/hw"), ["net/hw/b.py", "net/hw/c", "net/hw/d.py"]
            )
