# SPDX-License-Identifier: GPL-2.0
"""Configurations: fragments on top of each other, and missing symbols."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from testbed import settings
from testbed.build import kernel
from testbed.build.config import Fragment, extra_fragments, fragments, merged, missing_symbols
from testbed.env import Env
from testbed.host.ui import Failure

CLONE = Path(__file__).resolve().parents[4]


class FragmentTest(unittest.TestCase):
    def test_later_lines_win(self) -> None:
        part = Fragment("x", "# x\nCONFIG_A=y\nCONFIG_B=m\nCONFIG_A=m\n# CONFIG_B is not set\n")
        self.assertEqual(part.symbols, {"CONFIG_A": "m", "CONFIG_B": "n"})
        self.assertEqual(merged([part, Fragment("y", "CONFIG_B=y")]), "CONFIG_A=m\nCONFIG_B=y\n")

    def test_a_symbol_that_did_not_take_is_named_with_its_source(self) -> None:
        parts = [Fragment("common.config", "CONFIG_A=m\nCONFIG_B=y\n"),
                 Fragment("mine", "CONFIG_B=m\nCONFIG_C=y\nCONFIG_D=n\n")]  # fmt: skip
        config = "CONFIG_A=m\n# CONFIG_B is not set\nCONFIG_D=y\n"
        found = missing_symbols(parts, config)
        self.assertEqual(len(found), 3)
        self.assertRegex(found[0], "CONFIG_B=m, asked for by mine: it stays off")
        self.assertRegex(found[1], "CONFIG_C=y, asked for by mine: there is no such symbol")
        self.assertRegex(found[2], "CONFIG_D=n, asked for by mine: it is y")
        none = Fragment("mine", 'CONFIG_KEYS=""\nCONFIG_E=n\n')
        self.assertEqual(missing_symbols([none], ""), [])
        self.assertEqual(missing_symbols(parts[:1], "CONFIG_A=m\nCONFIG_B=y\n"), [])


class ConfigureTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def configure(self, *, partial: bool) -> None:
        """Configure a tree that knows none of our symbols."""
        env = Env(settings.read("test", {}), CLONE, self.top, self.top, Path("/"), CLONE, "", 1)
        env.__dict__["toolchain_key"] = "tools"
        source, build = self.top / "tree", self.top / "build-uml-tools"

        def run(command: list[str], *_: object, **__: Any) -> None:
            if "allnoconfig" in command:
                (build / ".config").write_text("CONFIG_NET=y\n")

        with mock.patch.object(kernel.proc, "run", run):
            kernel._configure(env, source, build, kernel.UML, self.top / "log", partial=partial)

    def test_a_tree_without_our_symbols_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "does not support the uml configuration"):
            self.configure(partial=False)

    def test_a_tree_with_the_first_patches_of_the_series_is_not(self) -> None:
        self.configure(partial=True)
        self.assertTrue((self.top / "build-uml-tools/.skbulk-config").exists())


class OurConfigsTest(unittest.TestCase):
    """Users of a network driver find their tools in the kernels that make run boots."""

    def symbols(self, config: str) -> dict[str, str]:
        values = settings.read("shell", {})
        env = Env(values, CLONE, CLONE, CLONE, Path("/"), CLONE, "", 1)
        return Fragment("", merged(fragments(env, config, Path("/nowhere")))).symbols

    def test_every_kernel_has_ipv6_tun_vlans_and_bpf(self) -> None:
        # The kernel for 32-bit Arm tests itself, and runs no programs.
        for config in {*kernel.CONFIGS, *kernel.NATIVE} - {"arm"}:
            found = self.symbols(config)
            for name in ("IPV6", "TUN", "VLAN_8021Q", "BPF_SYSCALL", "DEBUG_FS"):
                self.assertIn(found.get(f"CONFIG_{name}"), ("y", "m"), f"{config}: {name}")

    def test_a_virtual_machine_has_tracing_and_perf(self) -> None:
        for config in ("perf", "debug", "arm64", kernel.SELFTESTS_VM):
            found = self.symbols(config)
            for name in ("FTRACE", "ENABLE_DEFAULT_TRACERS", "PERF_EVENTS", "BPF_JIT"):
                self.assertEqual(found.get(f"CONFIG_{name}"), "y", f"{config}: {name}")

    def test_a_forwarding_host_has_a_bridge_and_nftables(self) -> None:
        for config in ("perf", kernel.UML, kernel.SELFTESTS):
            found = self.symbols(config)
            for name in ("BRIDGE", "NF_TABLES", "NF_TABLES_IPV6", "NFT_NAT", "NFT_FLOW_OFFLOAD"):
                self.assertIn(found.get(f"CONFIG_{name}"), ("y", "m"), f"{config}: {name}")


class ExtraTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def env(self, **variables: str) -> Env:
        values = settings.read("shell", {"SKBULK_CACHE": str(self.top), **variables})
        env = Env(values, CLONE, self.top, self.top / "out", Path("/"), self.top, "", 1)
        env.__dict__["toolchain_key"] = "tools"
        return env

    def file(self, name: str, text: str) -> str:
        (self.top / name).write_text(text)
        return str(self.top / name)

    def test_it_comes_last_on_top_of_every_configuration(self) -> None:
        extra = self.file("extra", "CONFIG_IPV6=m\n")
        for config in (*kernel.CONFIGS, kernel.UML, kernel.DEB):
            parts = fragments(self.env(CONFIG_EXTRA=extra), config, Path("/nowhere"))
            self.assertEqual(parts[-1].symbols, {"CONFIG_IPV6": "m"})
            self.assertIn("CONFIG_IPV6=m\n", merged(parts))

    def test_the_build_folder_goes_by_content(self) -> None:
        plain = kernel.build_folder(self.env(), "perf")
        one = self.file("one", "CONFIG_X=y\n")
        same = self.file("same", "# the same\nCONFIG_X=y\n")
        other = self.file("other", "CONFIG_X=m\n")
        folders = [
            kernel.build_folder(self.env(CONFIG_EXTRA=name), "perf") for name in (one, same, other)
        ]
        self.assertEqual(folders[0], folders[1])
        self.assertEqual(len({plain, *folders}), 3)

    def test_what_the_trees_tests_ask_for_need_not_be_had(self) -> None:
        folder = self.top / "tools/testing/selftests/drivers/net"
        folder.mkdir(parents=True)
        (folder / "config").write_text("CONFIG_VLAN_8021Q=m\nCONFIG_KPROBES=y\n")
        parts = fragments(self.env(), kernel.SELFTESTS, self.top)
        self.assertIn("CONFIG_VLAN_8021Q=y\n", merged(parts))
        self.assertNotIn("KPROBES", " ".join(missing_symbols(parts, "")))

    def test_several_files(self) -> None:
        names = f"{self.file('a', 'CONFIG_A=y')} {self.file('b', 'CONFIG_B=y')}"
        self.assertEqual(len(extra_fragments(self.env(CONFIG_EXTRA=names))), 2)

    def test_a_distributions_configuration_takes_the_place_of_the_small_one(self) -> None:
        base = self.file("base", "CONFIG_BLOCK=y\n")
        values = {"SKBULK_CACHE": str(self.top)}
        for more, names in (({}, 4), ({"CONFIG_BASE": base}, 1)):
            env = Env(settings.read("deb", {**values, **more}), CLONE, self.top, self.top,
                      Path("/"), CLONE, "", 1)  # fmt: skip
            parts = fragments(env, kernel.DEB, Path("/nowhere"))
            self.assertEqual(len(parts), names)
            self.assertEqual(parts[-1].symbols["CONFIG_IXGBE_RUST"], "m")
            self.assertEqual(Fragment("", merged(parts)).symbols.get("CONFIG_BLOCK", "y"), "y")

    def test_a_line_that_sets_nothing_is_refused(self) -> None:
        name = self.file("bad", "CONFIG_A=y\nDEBUG_INFO=y\n")
        with self.assertRaisesRegex(Failure, r"line 2 of \S+ sets no symbol: DEBUG_INFO=y"):
            extra_fragments(self.env(CONFIG_EXTRA=name))

    def test_a_file_that_is_missing_is_refused_at_once(self) -> None:
        with self.assertRaisesRegex(Failure, "there is no file /nowhere"):
            self.env(CONFIG_EXTRA="/nowhere")
