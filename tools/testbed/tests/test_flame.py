# SPDX-License-Identifier: GPL-2.0
"""Flame graphs."""

from __future__ import annotations

import unittest
from xml.etree import ElementTree

from testbed import flame

STACKS = [
    (("vmlinux net_rx_action", "ixgbe_rust poll"), 30.0),
    (("vmlinux net_rx_action", "ixgbe_rust poll", "vmlinux a<b>"), 60.0),
    (("vmlinux net_rx_action",), 10.0),
]


class FlameTest(unittest.TestCase):
    """From stacks to a picture."""

    def test_stacks_add_up(self) -> None:
        root = flame.build(STACKS, "all")
        self.assertEqual(root.total, 100.0)
        outer = root.children["vmlinux net_rx_action"]
        self.assertEqual((outer.own, outer.total), (10.0, 100.0))
        self.assertEqual(root.depth, 4)

    def test_the_picture_is_xml_with_a_box_per_function(self) -> None:
        text = flame.svg(flame.build(STACKS, "all"), "a & b", "note")
        tree = ElementTree.fromstring(text)
        titles = [each.text or "" for each in tree.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(len(titles), 4)
        self.assertIn("vmlinux a<b>: 60.0 instructions per packet (60.0%)", titles)

    def test_widths_are_shares(self) -> None:
        text = flame.svg(flame.build(STACKS, "all"), "t", "n")
        widths = [
            float(each.get("width", "0"))
            for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect")
        ]
        self.assertAlmostEqual(widths[1], 1180.0)
        self.assertIn(708.0, widths)

    def test_nothing_is_a_picture_too(self) -> None:
        ElementTree.fromstring(flame.svg(flame.build([], "all"), "t", "n"))


if __name__ == "__main__":
    unittest.main()
