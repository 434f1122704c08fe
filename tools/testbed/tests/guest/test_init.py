# SPDX-License-Identifier: GPL-2.0
"""The guest's first process."""

from __future__ import annotations

import re
from pathlib import Path

_INIT = Path(__file__).resolve().parents[2] / "guest/init"
# The run's own folder, and the run's own copy of the selftests.
_WRITABLE = ["/mnt/job", "/mnt/job", "/mnt/selftests", "/mnt/selftests"]


def test_the_folders_of_the_host_are_mounted_for_reading() -> None:
    mounts = re.findall(r"mount -t (?:9p|hostfs) -o (\S+) \S+ (\S+)", _INIT.read_text())
    writable = [place for options, place in mounts if not re.search(r'[",]ro,', options)]
    assert sorted(writable) == _WRITABLE, mounts
