# SPDX-License-Identifier: GPL-2.0
"""Reports of KCSAN are found, and those of Rust are identified."""

import unittest

from testbed.suites.test_races import races

CONSOLE = """\
[    1.0] ==================================================================
[    1.0] BUG: KCSAN: data-race in __mod_timer / run_timer_base
[    1.0]
[    1.0] write to 0xffff888007c0a080 of 8 bytes by task 12 on cpu 1:\r
[    1.0]  __mod_timer+0x10/0x20
[    1.0] read to 0xffff888007c0a080 of 8 bytes by interrupt on cpu 0:
[    1.0]  run_timer_base+0x10/0x20
[    1.0] ==================================================================
[    2.0] ok 1 something
[    3.0] ==================================================================
[    3.0] BUG: KCSAN: data-race in memcpy / __list_del
[    3.0]  memcpy+0x1/0x2
[    3.0]  _RNvMs_NtNtNtCs1_6kernel4sync9alf_queue+0x1/0x2
"""
QUEUE_STATE = """\
[    1.0] BUG: KCSAN: data-race in __dev_direct_xmit / rust_helper_netif_tx_stop_queue
[    1.0]
[    1.0] write (marked) to 0xffff888000e09710 of 8 bytes by task 578 on cpu 0:
[    1.0]  rust_helper_netif_tx_stop_queue+0x42/0x50
[    1.0]  _RINvMNtNtCs1_6kernel3net5queueNtB3_7TxQueue16stop_and_recheck+0x1f/0xb0
[    1.0]
[    1.0] read to 0xffff888000e09710 of 8 bytes by task 579 on cpu 1:
[    1.0]  __dev_direct_xmit+0x1c6/0x2a0
[    1.0]  _RINvNtCs1_6kernel7kthread3run+0x126/0x1b0
[    1.0] ==================================================================
"""


class Races(unittest.TestCase):
    """Races in the text of a console."""

    def test_each_report_is_found_also_one_without_an_end(self) -> None:
        found = races(CONSOLE)
        self.assertEqual(
            [race.title for race in found],
            ["data-race in __mod_timer / run_timer_base", "data-race in memcpy / __list_del"],
        )
        self.assertNotIn("ok 1 something", found[0].lines)

    def test_a_report_is_ours_if_rust_is_in_it(self) -> None:
        timer, list_del = races(CONSOLE)
        self.assertIsNone(timer.ours)
        self.assertIn("alf_queue", list_del.ours or "")

    def test_a_helper_alone_is_not_rust(self) -> None:
        text = CONSOLE.replace("__mod_timer+", "rust_helper_READ_ONCE+")
        self.assertIsNone(races(text)[0].ours)
        self.assertIsNotNone(races(text.replace("__mod", "_RNvCs1_6kernel"))[0].ours)

    def test_the_core_reads_the_state_of_a_queue_plainly(self) -> None:
        self.assertIsNone(races(QUEUE_STATE)[0].ours)
        for right, wrong in (
            ("write (marked) to", "write to"),
            ("  __dev_direct_xmit+", "  _RNvCs1_6kernel3net+"),
            ("/ rust_helper_netif_tx_stop_queue", "/ rust_helper_skb_queue_tail"),
            ("read to", "read (marked) to"),
        ):
            with self.subTest(wrong):
                self.assertIn(right, QUEUE_STATE)
                self.assertIsNotNone(races(QUEUE_STATE.replace(right, wrong))[0].ours)

    def test_a_quiet_console_has_none(self) -> None:
        self.assertEqual(races("[    1.0] ok 1 something\n"), [])
