# SPDX-License-Identifier: GPL-2.0
"""tools/testbed/collect: a report about a card."""

from __future__ import annotations

from sandbox import SandboxTest


class CollectTest(SandboxTest):
    """The report has every section, also without a card and with tools missing."""

    def test_a_report(self) -> None:
        done = self.run_script("cd $TOP && $CLONE/tools/testbed/collect lo && cat card-lo.txt")
        self.assert_succeeds(
            done, "card-lo.txt: ", "==> ethtool -d lo", "==> ip -details", "LOOPBACK", "==> dmesg"
        )

    def test_an_interface_that_is_not_there(self) -> None:
        done = self.run_script("$CLONE/tools/testbed/collect no0")
        self.assert_fails(done, "there is no interface no0", "lo")

    def test_a_file_that_cannot_be_written(self) -> None:
        done = self.run_script("$CLONE/tools/testbed/collect lo /no/where")
        self.assert_fails(done, "/no/where cannot be written")

    def test_without_an_interface_it_tells_how(self) -> None:
        done = self.run_script("$CLONE/tools/testbed/collect")
        self.assert_fails(done, "collect INTERFACE [FILE]")
