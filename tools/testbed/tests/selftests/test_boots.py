# SPDX-License-Identifier: GPL-2.0
"""Tests of the selection of programs, and of the record of both drivers; nothing is booted."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from testbed.build.selftests import Selftests
from testbed.host.ui import Failure
from testbed.selftests import boots
from testbed.selftests.results import Program, parse


class Run(unittest.TestCase):
    """An installation with a program of each kind."""

    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        hw = self.top / "drivers/net/hw"
        hw.mkdir(parents=True)
        (self.top / "kselftest-list.txt").write_text("drivers/net/hw:ours.py\n")
        texts = {"a.py": "", "ours.py": "", "pairs.sh": "", "peer.sh": "DRIVER_TEST_CONFORMANT=yes"}
        for name, text in texts.items():
            (hw / name).write_text(text)
            (hw / name).chmod(0o755)
        bpf = self.top / "bpf"
        bpf.mkdir()
        (bpf / "xskxceiver-zc.sh").touch(0o755)
        self.clone = self.top / "clone"
        own = self.clone / "tools/testing/selftests/drivers/net/hw/ours.py"
        own.parent.mkdir(parents=True)
        own.touch()
        self.selftests = Selftests(self.top)

    def test_the_programs_are_upstreams(self) -> None:
        found = [Path(name).name for name in boots.programs(self.selftests, self.clone)]
        self.assertEqual(found, ["xskxceiver-zc.sh", "a.py", "pairs.sh", "peer.sh"])

    def test_only_old_shell_programs_take_interfaces(self) -> None:
        names = {
            name: boots.setting(self.selftests, f"drivers/net/hw/{name}").name
            for name in ("a.py", "pairs.sh", "peer.sh")
        }
        self.assertEqual(names, {"a.py": "peer", "pairs.sh": "pairs", "peer.sh": "peer"})

    def test_bpf_programs_take_interfaces_too(self) -> None:
        names = {
            name: boots.setting(self.selftests, f"bpf/{name}.sh").name
            for name in ("xskxceiver-zc", "xdp-forward", "xdp-bench", "xdp_features")
        }
        in_uml, in_vm = [*names.values()][:2], [*names.values()][2:]
        self.assertEqual((in_uml, in_vm), (["pairs-bpf"] * 2, ["pairs-bpf-vm"] * 2))

    def ready(self) -> Any:
        env = SimpleNamespace(clone=self.clone, out=self.top, logs=self.top)
        return SimpleNamespace(selftests=self.selftests, env=env)

    def test_both_drivers_are_in_the_record(self) -> None:
        def run(_ready: Any, driver: str, names: list[str]) -> list[Program]:
            lines = [f"# begin {names[0]}", "1..1", "ok 1 a.x", f"# end {names[0]} 0"]
            return parse(
                lines if driver == "c" else [line.replace("ok", "not ok") for line in lines]
            )

        with mock.patch.object(boots, "run", run), mock.patch.object(boots, "say"):
            found, record = boots.both(self.ready(), ["drivers/net/hw/a.py"])
        self.assertEqual(list(found), ["c", "rust"])
        self.assertEqual(list(record), ["rust", "c"])
        self.assertEqual([record[driver]["a.py"]["pass"] for driver in ("rust", "c")], [0, 1])

    def test_some_programs_can_be_chosen(self) -> None:
        def run(_ready: Any, _driver: str, names: list[str]) -> list[Program]:
            return [Program(name) for name in names]

        names = boots.chosen(boots.programs(self.selftests, self.clone), ["peer.sh"])
        with mock.patch.object(boots, "run", run), mock.patch.object(boots, "say"):
            found, _ = boots.both(self.ready(), names)
        self.assertEqual([one.name for one in found["c"]], ["drivers/net/hw/peer.sh"])

    def test_an_unknown_program_is_refused(self) -> None:
        with self.assertRaises(Failure) as caught:
            boots.chosen(boots.programs(self.selftests, self.clone), ["per.sh"])
        said = caught.exception.on_one_line
        self.assertIn("ONLY=selftests/per.sh: the tree has no such program", said)
        self.assertIn("did you mean selftests/peer.sh?", said)

    def test_the_kernels_are_those_of_the_programs(self) -> None:
        for names, kernels in ((["a.py"], ["selftests"]), (["irq.py"], ["selftestsvm"])):
            found = boots.configs(self.selftests, [f"drivers/net/hw/{name}" for name in names])
            self.assertEqual(found, kernels)

    def test_some_programs_run_in_a_vm(self) -> None:
        # For its interrupts; for its JIT.
        for name in ("hw/irq.py", "xdp.py", "hw/xdp_metadata.py", "hw/xsk_reconfig.py"):
            self.assertEqual(boots.setting(self.selftests, f"drivers/net/{name}").name, "vm")

    def test_programs_that_are_not_in_the_build_root_come_with_the_run(self) -> None:
        unpacked = self.top / "unpacked/usr/sbin"
        unpacked.mkdir(parents=True)
        for name in ("xdp-bench", "ethtool"):
            (unpacked / name).touch(0o755)
        share = self.top / "share"
        share.mkdir()
        one = boots.setting(self.selftests, "bpf/xdp-bench.sh")
        with mock.patch.object(boots.debian, "unpacked", return_value=self.top / "unpacked"):
            boots._bring_programs(self.ready().env, one, share)
        self.assertTrue((share / "xdp-tools/usr/sbin/xdp-bench").exists())
        # Its libraries are not the guest's.
        self.assertIn("exec $at/sbin/${0##*/}", (share / "bin/xdp-bench").read_text())

    def test_after_a_guest_that_dies_the_others_have_their_turn(self) -> None:
        turns: list[list[str]] = []

        def boot(
            _ready: Any, _driver: str, _one: Any, names: list[str], _log: str
        ) -> list[Program]:
            turns.append(names)
            return [Program(names[0])]

        with mock.patch.object(boots, "_boot", boot):
            done = boots.run(self.ready(), "c", ["drivers/net/hw/a.py", "drivers/net/hw/peer.sh"])
        self.assertEqual([len(names) for names in turns], [2, 1])
        self.assertEqual(len(done), 2)
