# SPDX-License-Identifier: GPL-2.0
"""The table of variables, and the complaints about wrong values."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from testbed import catalogue, combinations, settings
from testbed.boot.card import CARDS
from testbed.host.ui import Failure

CLONE = Path(__file__).resolve().parents[3]
PACKAGE = CLONE / "tools/testbed/testbed"


def complaint(verb: str, **values: str) -> str:
    """The complaint about variables on make's command line; empty if they are right."""
    try:
        settings.read(verb, {**values, "SKBULK_GIVEN": " ".join(values)})
    except Failure as error:
        return "\n".join([str(error), *error.hints])
    return ""


class Cards(unittest.TestCase):
    def test_an_unknown_card_is_refused(self) -> None:
        self.assertIn("CARD is one of 82599, 82599-kx4, e1000e", complaint("demo", CARD="e1000"))

    def test_a_card_of_qemu_needs_qemu(self) -> None:
        self.assertIn("only QEMU models", complaint("demo", CARD="e1000e", MACHINE="uml"))
        self.assertEqual(complaint("demo", CARD="e1000e"), "")

    def test_a_card_of_qemu_is_neither_judged_nor_recorded(self) -> None:
        said = complaint("shell", CARD="e1000e", JUDGE="1")
        self.assertIn("no judge of the card e1000e", said)
        self.assertIn("leave JUDGE out", said)
        said = complaint("demo", CARD="e1000e", RECORD="1")
        self.assertIn("not of e1000e", said)
        self.assertIn("leave RECORD out", said)
        self.assertEqual(complaint("shell", CARD="82599", JUDGE="1"), "")

    def test_a_backplane_is_modelled_and_not_recorded(self) -> None:
        card = "82599-kx4"
        self.assertEqual(complaint("shell", CARD=card, JUDGE="1"), "")
        self.assertEqual(complaint("shell", CARD=card, MACHINE="uml"), "")
        self.assertIn("not of 82599-kx4", complaint("demo", CARD=card, RECORD="1"))

    def test_the_cards_are_those_that_a_guest_can_have(self) -> None:
        self.assertEqual(settings.VARIABLES["CARD"].kind.split("|"), list(CARDS))

    def test_the_guest_names_the_same_modules(self) -> None:
        program = CLONE / "tools/testbed/guest/bin/driver-module"
        for name, card in CARDS.items():
            for driver in card.paths:
                done = subprocess.run([program, driver], env={**os.environ, "CARD": name},
                                      capture_output=True, text=True, check=True)  # fmt: skip
                self.assertEqual(done.stdout.strip(), card.module(driver))


class Table(unittest.TestCase):
    def test_every_entry_of_the_help_text_is_in_the_table(self) -> None:
        names = re.findall(r"^  ([A-Z_]{2,})=", settings.HELP, re.M)
        self.assertEqual(list(settings.VARIABLES), names)
        self.assertGreater(len(names), 20)

    def test_kinds_verbs_and_defaults_are_known(self) -> None:
        for variable in settings.VARIABLES.values():
            with self.subTest(variable.name):
                for verb in variable.verbs:
                    self.assertIn(verb, (*settings.VERBS, "all"))
                if variable.default:
                    self.assertEqual(variable.read(variable.default), variable.default)
                known = "|" in variable.kind or ".." in variable.kind
                self.assertTrue(known or variable.kind in settings._KINDS)

    def test_the_build_root_finds_the_same_names_without_python(self) -> None:
        text = (CLONE / "tools/buildroot").read_text()
        function = re.search(r"^variables\(\) \{\n.*?^\}\n", text, re.M | re.S)
        assert function

        def names(*kinds: str) -> list[str]:
            words = f'settings={PACKAGE / "help.txt"}; {function[0]}variables "$@"'
            done = subprocess.run(["bash", "-c", words, "bash", *kinds], capture_output=True,
                                  text=True, check=True)  # fmt: skip
            return done.stdout.split()

        self.assertEqual(names(), list(settings.VARIABLES))
        # Those whose files and folders it binds.
        for kinds in ("FILE|TREE|DRIVER|FOLDER", "FILES"):
            known = [one.name for one in settings.VARIABLES.values()
                     if one.kind in kinds.split("|")]  # fmt: skip
            self.assertEqual(names(kinds), known)
            self.assertIn(f"variables '{kinds}'" if "|" in kinds else f"variables {kinds}", text)

    def test_make_help_prints_the_table_without_python(self) -> None:
        done = subprocess.run(["make", "help"], cwd=CLONE, capture_output=True, text=True,
                              check=True)  # fmt: skip
        self.assertEqual(done.stdout, settings.HELP)

    def test_every_verb_is_a_target_and_a_module(self) -> None:
        makefile = (CLONE / "Makefile").read_text()
        for verb in settings.VERBS:
            self.assertRegex(makefile, rf"(?m)^(?:[a-z ]+ )?{verb}(?: [a-z ]+)?:")
        # These are in bash, as nothing else is sure to exist.
        bash = {"help", "doctor", "clean", "distclean"}
        modules = {path.stem for path in (PACKAGE / "verbs").glob("[a-z]*.py")}
        self.assertEqual(modules, set(settings.VERBS) - bash)
        for verb in modules:
            self.assertIsNotNone(importlib.util.find_spec(f"testbed.verbs.{verb}"))

    def test_every_suite_says_when_it_runs(self) -> None:
        self.assertEqual({when for _, when, *_ in catalogue._ROWS}, {"tier", "all", "request"})

    def test_nothing_else_reads_the_environment(self) -> None:
        for package in ("testbed/testbed", "insn/insn", "txsim/txsim"):
            for path in (CLONE / "tools" / package).rglob("*.py"):
                if path.name != "settings.py":
                    self.assertNotRegex(path.read_text(), r"os\.environ|getenv", str(path))


class Values(unittest.TestCase):
    WRONG = (
        ("demo", "FRAMES", "abc", "from 1000"),
        ("demo", "FRAMES", "999", "from 1000"),
        ("demo", "FRAMES", "9" * 20, "from 1000 to"),
        ("demo", "CONFIG", "kcsan", "the demo measures"),
        ("demo", "ACCEL", "foo", "kvm, tcg"),
        ("demo", "JOBS", "0", "from 1"),
        ("demo", "KDIR", "/nonexistent", "no such folder"),
        ("demo", "KDIR", str(CLONE), "no kernel tree"),
        ("demo", "KDIR", "/", "no kernel tree"),
        ("run", "SCRIPT", "/nonexistent", "no such file"),
        ("shell", "CPUS", "9", "from 1 to 8"),
        ("shell", "CPUS", "abc", "from 1 to 8"),
        ("shell", "CPUS", "²", "from 1 to 8"),
        ("shell", "DRIVER", "e1000", "rust, c, none"),
        ("shell", "DRIVER", "./nonexistent", "no such folder"),
        ("run", "DRIVER", str(CLONE / "tools"), "neither a Makefile nor a Kbuild"),
        ("shell", "MACHINE", "xen", "qemu, uml"),
        ("fuzz", "CORPUS", "/nonexistent", "no such folder"),
        ("fuzz", "ENTRY", "death", "life, data"),
        ("fuzz", "DRIVER", "none", "take rust or c"),
        ("fuzz", "CONFIG", "kcsan", "take debug"),
        ("run", "TIMEOUT", "soon", "seconds"),
        ("run", "TIMEOUT", "0", "seconds"),
        ("run", "TIMEOUT", "nan", "seconds"),
        ("bench", "ROUNDS", "0", "from 1 to 1000"),
        ("bench", "RECORD", "2", "0 or 1"),
        ("bench", "ONLY", "slob", "did you mean slab"),
        ("test", "ONLY", "kunut", "did you mean kunit"),
        ("test", "ONLY", ",", "no name"),
        ("test", "LIMIT", "soon", "seconds"),
        ("run", "DRIVER", "~nobody-of-that-name/mine", "no such folder"),
        ("demo", "FRAMES", "9" * 5000, "from 1000 to"),
        ("demo", "CONFIG_EXTRA", str(CLONE / "README.md"), "sets no symbol"),
        ("test", "SERIES", "benchmarks", "add ONLY=bisect"),
        ("bench", "ONLY", "forward/latency", "no such benchmark"),
        ("test", "LANES", "17", "from 1 to 16"),
        ("test", "ALL", "some", "one of 0, 1, rest"),
        ("test", "REPEAT", "0", "from 1 to 1000"),
        ("test", "SHARD", "3/2", "I/N"),
        ("test", "SHARD", "0/2", "I/N"),
        ("demo", "SKBULK_HOST", "2", "0 or 1"),
        ("demo", "OVERLAY", "off", "0 or 1"),
        ("demo", "SKBULK_MIRROR", "debian", "http://"),
        ("demo", "XDG_CACHE_HOME", "cache", "absolute"),
        ("demo", "XDG_CACHE_HOME", "/my cache", "blanks or colons"),
        # A verb that does not take it, and names that no verb takes.
        ("demo", "CPUS", "2", "CPUS is for make run, make shell"),
        ("clean", "DRIVER", "c", "make clean takes no DRIVER"),
        ("shell", "CPU", "2", "did you mean CPUS"),
        ("shell", "cpus", "2", "did you mean CPUS"),
        ("shell", "WHATEVER", "2", "make help"),
    )

    def test_a_wrong_value_is_named_with_the_way_out(self) -> None:
        for verb, name, value, said in self.WRONG:
            with self.subTest(f"{verb} {name}={value}"):
                found = complaint(verb, **{name: value})
                self.assertTrue(found.startswith(name), found)
                self.assertIn(said, found)

    def test_what_makes_no_sense_together(self) -> None:
        self.assertIn("one kernel only", complaint("shell", MACHINE="uml", CONFIG="perf"))
        self.assertIn("no Rust driver", complaint("shell", OVERLAY="0", DRIVER="rust"))
        with tempfile.TemporaryDirectory() as tree:
            Path(tree, "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 3\n")
            own = settings.read("shell", {"OVERLAY": "0", "DRIVER": "rust", "KDIR": tree})
        self.assertEqual(own.text("DRIVER"), "rust")
        self.assertIn("add forward or tcp", complaint("bench", ONLY="slab", CASES="1 flow"))
        for name in ("forward", "tcp", "slab,tcp"):
            found = settings.read("bench", {"ONLY": name, "CASES": "1 flow"})
            self.assertEqual(found.text("CASES"), "1 flow")
        self.assertIn("only insn", complaint("bench", ONLY="insn,xdp", NODES="2"))
        self.assertIn("of one node", complaint("bench", ONLY="insn", NODES="2", RECORD="1"))
        self.assertIn("no script", complaint("run"))

    def test_the_environment_may_hold_more_than_a_verb_takes(self) -> None:
        found = settings.read("clean", {"DRIVER": "e1000", "CPU": "2", "FRAMES": "-"})
        self.assertEqual(found.text("DRIVER"), "rust")
        with self.assertRaises(Failure):
            settings.read("shell", {"DRIVER": "e1000"})

    def test_a_path_that_the_kernels_build_refuses(self) -> None:
        with tempfile.TemporaryDirectory(prefix="my driver") as folder:
            Path(folder, "Makefile").write_text("obj-m += x.o\n")
            self.assertIn("blanks or colons", complaint("shell", DRIVER=folder))

    def test_a_driver_is_a_word_or_a_folder(self) -> None:
        self.assertIsNone(settings.read("shell", {"DRIVER": "c"}).driver_folder())
        sample = CLONE / "samples/rust/driver_net"
        self.assertEqual(settings.read("shell", {"DRIVER": str(sample)}).driver_folder(), sample)

    def test_values_in_their_one_spelling(self) -> None:
        found = settings.read("shell", {"OVERLAY": "No", "CPUS": "04", "DRIVER": ""})
        self.assertFalse(found.switch("OVERLAY"))
        self.assertEqual(found.number("CPUS"), 4)
        self.assertEqual(found.text("DRIVER"), "rust")
        self.assertFalse(found.given("DRIVER"))
        self.assertEqual(found.number("JOBS", 7), 7)

    def test_programs_of_a_suite_can_be_named(self) -> None:
        self.assertEqual(complaint("test", ONLY="e2e-rust/forward.py,python"), "")
        self.assertEqual(
            complaint("test", ONLY="e2e-uml,e2e-uml/forward,mutants/rx-tail-early"), ""
        )
        self.assertEqual(complaint("test", ONLY="lint/mypy"), "")

    def test_values_that_nothing_would_look_at(self) -> None:
        self.assertIn("takes both drivers", complaint("demo", OVERLAY="0", RECORD="1"))
        self.assertIn("takes both drivers", complaint("demo", MACHINE="uml", RECORD="1"))
        self.assertIn("no accelerator", complaint("shell", MACHINE="uml", ACCEL="tcg"))
        self.assertIn("is emulated", complaint("shell", CONFIG="arm64", ACCEL="kvm"))
        self.assertEqual(complaint("test", ONLY="bisect", SERIES="benchmarks"), "")

    def test_a_device_that_is_not_there(self) -> None:
        nowhere = Path("/nonexistent")
        with mock.patch.object(combinations, "KVM", nowhere):
            self.assertIn("missing", complaint("demo", ACCEL="kvm"))

    def test_all_verbs_of_a_command_line_are_checked_together(self) -> None:
        both = {"SKBULK_GOALS": "demo test", "SKBULK_GIVEN": "FRAMES ONLY CPUS"}
        settings.read("test", {**both, "FRAMES": "2000", "ONLY": "lint"})
        with self.assertRaisesRegex(Failure, "make test takes no CPUS"):
            settings.read("test", {**both, "CPUS": "2"})
        self.assertEqual(settings.goals_of("demo", both), ["demo", "test"])
        # A verb inside of another: the unit tests, which make test calls.
        self.assertEqual(settings.goals_of("shell", both), ["shell"])

    def test_an_unknown_verb(self) -> None:
        self.assertIn("there are demo", complaint("dmeo"))
