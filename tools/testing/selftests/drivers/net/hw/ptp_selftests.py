#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" The kernel's own tests of clocks (selftests/ptp) pass with the clock of a NIC. """

import os
import re
import subprocess
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, ksft_eq, ksft_exit, ksft_ge, ksft_in
from lib.py import ksft_ne, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.ptp_clock import SECOND, Clock, clock_number
from lib.py.support import skip_program

PTP = Path(__file__).resolve().parents[3] / "ptp"
# The script takes a clock for right that is less than half a second off. A busy machine may stand
# still for longer.
TRIES = 3
SKIP = 4


@ksft_variants(["settime", "adjtime", "adjfreq"])
def phc(cfg, test):
    """ A test of phc.sh passes, which takes two minutes. """
    words = [PTP / "phc.sh", f"/dev/ptp{cfg.clock.number}"]
    for _ in range(TRIES):
        done = subprocess.run(words, env=os.environ | {"TESTS": test}, capture_output=True,
                              text=True, timeout=500, check=False)
        if done.returncode != 1:
            break
    if done.returncode == SKIP:
        raise KsftSkipEx(done.stdout.strip())
    ksft_eq(done.returncode, 0, done.stdout + done.stderr)


def _testptp(cfg, words):
    """ Run testptp, and return what it says. """
    done = cmd(f"{PTP}/testptp -d /dev/ptp{cfg.clock.number} {words}", timeout=60)
    return done.stdout


def capabilities(cfg):
    """ testptp tells what the clock can do. """
    limit = re.search(r"(\d+) maximum frequency adjustment", _testptp(cfg, "-c"))
    ksft_ne(limit, None)
    ksft_ge(int(limit[1]) if limit else 0, 1_000_000)


@ksft_variants([KsftNamedVariant("get", "-g", "clock time"),
                KsftNamedVariant("set", "-s", "set time okay"),
                KsftNamedVariant("set_seconds", "-T 5", "set time okay"),
                KsftNamedVariant("shift", "-t -3", "time shift okay"),
                KsftNamedVariant("shift_nanoseconds", "-t 1 -n 7", "time shift okay"),
                KsftNamedVariant("frequency", "-f 1000", "frequency adjustment okay"),
                KsftNamedVariant("nominal", "-f 0", "frequency adjustment okay")])
def request(cfg, words, answer):
    """ testptp makes a request. """
    ksft_in(answer, _testptp(cfg, words))


@ksft_variants([KsftNamedVariant("offset", "-k 5"), KsftNamedVariant("extended", "-x 5")])
def among_system_times(cfg, words):
    """ testptp reads times of the clock among those of the machine. """
    _testptp(cfg, "-s")
    said = _testptp(cfg, words)
    times = [int(seconds) * SECOND + int(nanoseconds)
             for seconds, nanoseconds in re.findall(r"(\d{9,})\.(\d{9})", said)]
    ksft_ge(len(times), 15, said)


def main():
    """ Ksft boiler plate main """

    if not (PTP / "testptp").exists():
        skip_program("needs selftests/ptp")
    with PeerEnv(__file__, v6=False) as cfg:
        cfg.reach()
        with Clock(clock_number(cfg.ifname)) as cfg.clock:
            ksft_run(cfg.judged([capabilities, request, among_system_times, phc]), args=(cfg, ))
            cfg.clock.frequency(0)
    ksft_exit()


if __name__ == "__main__":
    main()
