# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of KTAP and of the record; no guest is needed."""

from __future__ import annotations

import unittest
from typing import Any

from testbed.selftests import record
from testbed.selftests.boots import blame
from testbed.selftests.results import FAIL, PASS, SKIP, XFAIL, Case, Program, parse

KSFT = """\
# begin drivers/net/stats.py
TAP version 13
1..4
ok 1 stats.check_pause # SKIP pause not supported by the device
# Check| At stats.py, line 81, in pkt_byte_sum:
# Check|     ksft_ge(a, b)
# Check failed 3 < 7 comment
not ok 2 stats.pkt_byte_sum
ok 3 stats.qstat_by_ifindex
ok 4 stats.nsim # XFAIL Test only works on netdevsim
# Totals: pass:1 fail:1 xfail:1 xpass:0 skip:1 error:0
# end drivers/net/stats.py 1
"""
RAISED = """\
# begin drivers/net/hw/a.py
TAP version 13
1..2
# Exception| Traceback (most recent call last):
# Exception|   File "a.py", line 3, in first
# Exception| net.lib.py.utils.CmdExitFailure: Command failed
# Exception| CMD: ethtool -L eth0
# Exception|   EXIT: 1
# Exception|   STDERR: no such thing
not ok 1 a.first
# end drivers/net/hw/a.py 1
"""
SHELL = """\
# begin drivers/net/hw/loopback.sh
TEST: loopback                                                      [ OK ]
TEST: ping with speed 1000 autoneg off                              [FAIL]
\tping with speed 1000 autoneg off
TEST: no_cable                                                      [SKIP]
\tno such port
TEST: twice                                                         [ OK ]
TEST: twice                                                         [XFAIL]
# end drivers/net/hw/loopback.sh 1
"""
TOLD = """\
# begin drivers/net/hw/ethtool_mm.sh
SKIP: eth0 does not support MAC Merge
# end drivers/net/hw/ethtool_mm.sh 4
"""
LOOPBACK = """\
# begin drivers/net/hw/loopback.sh
TEST: SKIP: dev eth0 does not support loopback feature              [ OK ]
# end drivers/net/hw/loopback.sh 4
"""


def one(text: str) -> Program:
    programs = parse(text.splitlines())
    assert len(programs) == 1
    return programs[0]


class Ktap(unittest.TestCase):
    """The output of ksft_run()."""

    def test_each_case_has_its_result_and_reason(self) -> None:
        self.assertEqual(
            one(KSFT).cases,
            {
                "check_pause": Case(SKIP, "pause not supported by the device"),
                "pkt_byte_sum": Case(FAIL, "3 < 7 comment"),
                "qstat_by_ifindex": Case(PASS),
                "nsim": Case(XFAIL, "Test only works on netdevsim"),
            },
        )

    def test_an_exception_is_the_reason(self) -> None:
        case = one(RAISED).cases["first"]
        self.assertEqual(case.result, FAIL)
        self.assertEqual(case.reason, "CmdExitFailure: Command failed: STDERR: no such thing")

    def test_a_case_that_was_announced_and_has_no_result_failed(self) -> None:
        self.assertEqual(one(RAISED).cases["case 2"].result, FAIL)

    def test_a_plan_of_nothing_is_a_skip(self) -> None:
        text = "# begin net/a.py\nTAP version 13\n1..0 # SKIP no driver\n# end net/a.py 4"
        self.assertEqual(one(text).cases, {"a": Case(SKIP, "no driver")})

    def test_a_plan_of_nothing_is_a_skip_though_the_program_succeeds(self) -> None:
        text = "# begin net/a.sh\n1..0\n# eth0 has no histogram\n# Totals: pass:0\n# end net/a.sh 0"
        self.assertEqual(one(text).cases, {"a": Case(SKIP, "eth0 has no histogram")})

    def test_a_check_that_failed_before_a_skip_is_a_failure(self) -> None:
        text = (
            "# begin net/a.py\n1..1\n# Check failed 1 != 2 \n"
            "not ok 1 a.first # SKIP not here\n# end net/a.py 1"
        )
        self.assertEqual(one(text).cases, {"first": Case(FAIL, "1 != 2 ")})

    def test_a_skip_that_names_no_case_is_the_program(self) -> None:
        text = "# begin net/a.py\nTAP version 13\n1..1\nok 1 # SKIP no peer\n# end net/a.py 4"
        self.assertEqual(one(text).cases, {"a": Case(SKIP, "no peer")})


class Shell(unittest.TestCase):
    """The output of the shell libraries."""

    def test_each_line_is_a_case(self) -> None:
        self.assertEqual(
            one(SHELL).cases,
            {
                "loopback": Case(PASS),
                "ping with speed 1000 autoneg off": Case(FAIL, "ping with speed 1000 autoneg off"),
                "no_cable": Case(SKIP, "no such port"),
                "twice": Case(PASS),
                "twice (2)": Case(XFAIL),
            },
        )

    def test_a_skipped_program_keeps_its_reason(self) -> None:
        reason = "eth0 does not support MAC Merge"
        self.assertEqual(one(TOLD).cases, {"ethtool_mm": Case(SKIP, reason)})

    def test_a_skip_is_no_pass_though_it_says_ok(self) -> None:
        reason = "dev eth0 does not support loopback feature"
        self.assertEqual(one(LOOPBACK).cases, {"loopback": Case(SKIP, reason)})


class Ends(unittest.TestCase):
    """Programs that do not end well."""

    def test_a_failing_program_without_cases_failed(self) -> None:
        text = "# begin net/a.py\nTraceback\nImportError: no yaml\n# end net/a.py 1"
        self.assertEqual(one(text).cases, {"a": Case(FAIL, "ImportError: no yaml")})

    def test_a_program_that_says_nothing_failed(self) -> None:
        text = "# begin net/a.py\n# end net/a.py 0"
        self.assertEqual(one(text).cases, {"a": Case(FAIL, "it says nothing")})

    def test_a_timeout_is_the_reason(self) -> None:
        text = "# begin net/a.py\nTAP version 13\n1..1\n# end net/a.py 124"
        program = one(text)
        self.assertIn("too long", program.cases["case 1"].reason)
        self.assertEqual(len(program.troubles), 1)

    def test_a_guest_that_ends_fails_its_last_program(self) -> None:
        programs = parse(f"{KSFT}# begin net/b.py\n1..1\n".splitlines(), "panic")
        self.assertEqual([program.code for program in programs], [1, None])
        self.assertEqual(programs[1].cases, {"case 1": Case(FAIL, "panic")})

    def test_a_lost_port_fails_the_program_that_lost_it(self) -> None:
        program = one(f"{TOLD}# lost drivers/net/hw/ethtool_mm.sh: no carrier")
        self.assertEqual(program.cases["the port works afterwards"], Case(FAIL, "no carrier"))

    def test_a_complaint_fails_the_program_that_ran(self) -> None:
        programs = parse(f"{KSFT}{TOLD}".splitlines())
        console = (
            "[ 1.0] skbulk: begin drivers/net/stats.py\r\n"
            "[ 1.1] skbulk: end drivers/net/stats.py\r\n"
            "[ 1.2] skbulk: begin drivers/net/hw/ethtool_mm.sh\r\n"
            "[ 1.3] WARNING: net/core/dev.c:1 at dev_open\r\n"
        )
        blame(programs, console)
        self.assertNotIn("the kernel does not complain", programs[0].cases)
        self.assertEqual(programs[1].cases["the kernel does not complain"].result, FAIL)
        self.assertEqual([program.troubles != [] for program in programs], [False, True])

    def test_a_program_without_a_mark_in_the_console_is_not_judged_well(self) -> None:
        programs = parse(TOLD.splitlines())
        blame(programs, "")
        self.assertEqual(len(programs[0].troubles), 1)


class Record(unittest.TestCase):
    """The record and its table."""

    def setUp(self) -> None:
        self.record: dict[str, Any] = {
            "c": record.of_driver(parse(f"{KSFT}{SHELL}".splitlines())),
            "rust": record.of_driver(parse(KSFT.replace("ok 3", "not ok 3").splitlines())),
        }

    def test_the_form(self) -> None:
        entry = self.record["c"]["stats.py"]
        self.assertEqual((entry["pass"], entry["fail"], entry["skip"]), (1, 1, 2))
        self.assertEqual(
            entry["cases"]["check_pause"],
            {"result": "skip", "reason": "pause not supported by the device"},
        )

    def test_the_table(self) -> None:
        self.assertEqual(
            record.table(self.record)[2:],
            [
                "| loopback.sh | 2 | 1 | 2 | - | - | - |",
                "| stats.py | 1 | 1 | 2 | 0 | 2 | 2 |",
                "| **all** | **3** | **2** | **4** | **0** | **2** | **2** |",
            ],
        )
