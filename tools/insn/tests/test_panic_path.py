# SPDX-License-Identifier: GPL-2.0
"""Ways to a panic in object code, on listings in the form of llvm-objdump."""

from __future__ import annotations

import unittest

from insn.panic_path import named, reached, references, way

PANIC = "_RNvNtCsaQ5R3vKnAXh_4core9panicking18panic_bounds_check"
START = "_RNvMNtCs1_3nic2tx6TxRing10start_xmit"

MODULE = f"""
nic.ko:\tfile format elf64-x86-64

Disassembly of section .text:

0000000000000000 <{START}>:
       0:      \tjbe\t0x9 <{START}+0x9>
       2:      \tcallq\t0x20 <local>
       7:      \tcallq\t0xc <{START}+0xc>
\t\t0000000000000008:  R_X86_64_PLT32\tof_the_crate-0x4

0000000000000020 <local>:
      20:      \tcallq\t0x25 <local+0x5>
\t\t0000000000000021:  R_X86_64_PLT32\t.text+0x3c
      25:      \tretq

0000000000000040 <by_section>:
      40:      \tmovq\t$0, %rdi
\t\t0000000000000043:  R_X86_64_32S\t.rodata+0xbd7
      47:      \tretq

0000000000000050 <not_called>:
      50:      \tcallq\t0x55 <not_called+0x5>
\t\t0000000000000051:  R_X86_64_PLT32\t{PANIC}-0x4
"""

CRATE = f"""
Disassembly of section .text:

0000000000000000 <of_the_crate>:
       0:      \tjne\t0x5 <of_the_crate+0x5>
       5:      \tjmp\t0xa <of_the_crate+0xa>
\t\t0000000000000006:  R_X86_64_PLT32\t{PANIC}-0x4
"""


class PanicPathTest(unittest.TestCase):
    """Listings of a module that calls into a crate."""

    def test_calls_are_found_however_they_are_written(self) -> None:
        found = references(MODULE.splitlines())
        self.assertEqual(found[START] - {START}, {"local", "of_the_crate"})
        self.assertIn("by_section", found["local"])
        self.assertEqual(found["by_section"], set())

    def test_what_is_not_called_does_not_count(self) -> None:
        found = references(MODULE.splitlines())
        self.assertEqual(way(found, START), [])
        self.assertEqual(reached(found, START), {START, "local", "by_section"})

    def test_a_panic_in_the_crate_is_found_with_the_way_to_it(self) -> None:
        found = {**references(CRATE.splitlines()), **references(MODULE.splitlines())}
        self.assertEqual(
            way(found, START),
            ["nic::tx::TxRing::start_xmit", "of_the_crate",
             "core::panicking::panic_bounds_check"],
        )  # fmt: skip

    def test_functions_are_found_by_the_end_of_their_name(self) -> None:
        found = references(MODULE.splitlines())
        self.assertEqual(named(found, "TxRing::start_xmit"), [START])
        self.assertEqual(named(found, "start_xmit"), [START])
        self.assertEqual(named(found, "xmit"), [])
