# SPDX-License-Identifier: GPL-2.0
"""Every variable of the verbs: the one place that lists, reads and checks them.

HELP is the output of `make help` and the table of variables. An entry is

      NAME=KIND    for VERB, VERB; default VALUE
          text

with a kind of `_KINDS`, alternatives (`a|b`) or a range of numbers (`1..8`,
`1..`). tools/buildroot passes these variables into the build root; it and the
Makefile read them with sed, as the host may have no Python. combinations.py
refuses values that do not go together.

The check runs before anything is built, where possible with the host's own
Python (3.9 or later; this file needs only its standard library).
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.combinations import together
from testbed.host.ui import Failure
from testbed.source import tags

HELP = """\
skbulk: a Rust driver for Intel's 82599 next to the C driver, on a modelled card

  make demo        build everything, forward packets with both drivers in turn,
                   print the comparison and write it to out/demo.json
  make test        the tests of a change, in User-Mode Linux; ALL=1 runs all others,
                   too; the last line is "N passed, N failed"
  make bench       time bulk memory natively in User-Mode Linux, ours against the C
                   it wraps, and forwarding and TCP, Rust driver against C driver;
                   count instructions per forwarded packet; tables, out/bench.json,
                   out/bench-*.svg, and flame graphs, out/insn-*.svg
  make run         boot the VM and run SCRIPT in it as root with both ports present;
                   prints the script's output. Its exit code (99: the script was
                   fine, but the kernel complained) is in the last line and in
                   out/results/exit-code, as make itself returns 2 for any but 0.
                   With TRACE=1: the register accesses of both drivers, side by side
  make shell       a prompt in the same VM; without a terminal it runs the commands
                   on its standard input:  echo dmesg | make shell
  make debug       make shell, or make run if SCRIPT is given, with QEMU's gdb stub and a
                   kernel that gdb can read; prints the gdb command
  make deb         Debian packages of a kernel with both drivers, for a machine with
                   a real card: out/deb
  make model       the modelled card for your own QEMU or User-Mode Linux: builds
                   out/nicmodel/nicmodel and prints the commands that attach it
  make patches     write the kernel series as mails, ready for git am and, with
                   recipients, for git send-email, to out/patches: a folder for each
                   of the series that patches/series names
  make results     render RESULTS.md and the tables in README.md from the records
  make lint        the linters alone
  make doctor      list missing tools, and how to get them
  make clean       remove out/, and the builds of all clones in the cache (kernels,
                   model); the build root and the kernel's source stay
  make distclean   remove skbulk's cache folder, and out/
  make help        this text

Variables, as in  make run SCRIPT=try.sh DRIVER=c:

  SCRIPT=FILE              for run, debug
      The script to run. In the VM, $PORT0 and $PORT1 are the ports, the command
      wire talks to the modelled card, load-driver and unload-driver change the
      driver, and files in /mnt/job/results appear in out/results.
  ARGS=WORDS               for run
      For a SCRIPT that is a selftest: its arguments and variables, for example
      ARGS="-t mtu SEED=5".
  DRIVER=DRIVER            for run, shell, debug; default rust
      The driver to load: rust, c, none, or the folder of one of your own, whose
      Makefile has a line obj-m += NAME.o (samples/rust/driver_net is an example).
  MACHINE=qemu|uml         for demo, run, shell; default qemu
      A VM, or User-Mode Linux, at this machine's own speed but without
      instruction counts.
  CARD=82599|82599-kx4|e1000e  for demo, run, shell, debug; default 82599
      The card in the VM: the modelled 82599 with a cage for modules or for a backplane, or the
      82574L that QEMU itself models.
  CONFIG=perf|debug|kcsan|cfi|rt|arm64  for demo, run, shell, debug; default perf
      The kernel in the VM. MACHINE=uml has one of its own; the demo uses perf.
  CONFIG_EXTRA=FILES       for demo, test, bench, run, shell, debug, deb
      Fragments of a kernel configuration (CONFIG_X=y, one per line) for every
      kernel that is built; separate several by blanks.
  CONFIG_BASE=FILE         for deb
      The configuration to start from, for example /boot/config-* of that machine,
      which takes an hour (default: a small one, tools/testbed/configs/machine.config).
  KERNEL_ARGS=WORDS        for run, shell, debug
      Words for the kernel's command line.
  WAIT=0|1                 for debug; default 0
      1 stops the machine before its first instruction until gdb says continue.
  JUDGE=0|1                for run, shell, debug, test; default 0
      1 makes the modelled card refuse what the datasheet forbids, and as slow and
      undefined as it allows; broken rules are printed, and the exit code of make run is 96.
      make test judges by itself; 0 with ONLY=mutants shows which mutants live without it.
  TRACE=0|1                for run; default 0
      1 boots User-Mode Linux with ixgbe and with DRIVER in turn, without SCRIPT, and
      prints which registers each of them uses in the life of a port, from probe to
      remove; written to out/trace.txt and out/trace.json. With DRIVER=rust, the exit
      code is 1 if an access that only one of them makes is not explained in
      ixgbe_rust.rst.
  CPUS=1..8                for run, shell, debug; default 2
      Processors of the guest.
  TIMEOUT=SECONDS          for run, shell; default 600
      The time limit of the script, or of the commands that make shell reads.
  ONLY=NAMES               for test, bench
      The suites or benchmarks to run; ONLY=list names them. For make test,
      suite/program selects one program of a suite.
  NETIF=INTERFACE          for test
      A port of this machine, a real card's perhaps: the selftests for any port with a
      peer run on it, and nothing else. They set it down and up. Call make as root.
  REMOTE=PLACE             for test
      The other end of NETIF's cable: ssh:root@host, or netns:name for a namespace.
  ALL=0|1|rest             for test; default 0
      1 runs everything that needs no ONLY=, in three kernels; rest what 1 adds to
      make test by itself.
  SHARD=I/N                for test
      The I-th of N parts of the tests, of about the same duration each.
  LANES=1..16              for test
      Tests that run at the same time (two per processor).
  LIMIT=SECONDS            for test
      No test begins later than that, and no kernel's build goes on; what is left is
      listed as not run, and counted in the last line.
  COVERAGE=0|1             for test; default 0
      1 runs e2e-uml and e2e-kx4, or the programs of them that ONLY names, with a kernel
      and a model that count, and prints how many functions of the driver, the
      abstractions and the model they enter; by program in out/coverage.json.
  REPEAT=1..1000           for test; default 1
      Runs the tests as often, one time after the other, and lists what failed at all.
  LOAD=0|1                 for test; default 0
      1 keeps a processor busy meanwhile.
  ROUNDS=1..1000           for bench
      Rounds of make bench (7; 3 boots for insn).
  CASES=NAMES              for bench
      Of forward and tcp: the cases with one of these words in their names
      (CASES="1 flow,latency"; an unknown word lists all cases).
  AUTHOR=PERSON            for patches
      "Name <mail>": the sender of the patches, with a sign-off. Without it they
      have none.
  VERSION=1..99            for patches; default 1
      The number of the posting: from 2 on, subjects have it, as in
      [PATCH net-next v2 3/12].
  TAGS=TAGS                for patches
      Tags for each patch that is written, before the sign-off:
      TAGS="Reviewed-by: Jane Doe <jane@example.org>; Acked-by: ..."
  SERIES=NAME              for patches, test
      One of the series; make test ONLY=bisect builds after each of its patches.
  RECORD=0|1               for bench, demo, test, results; default 0
      make bench and make demo record their figures, from which RESULTS.md is
      made, and make bench with insn the instruction counts that make test
      compares with, tools/insn/record/insn.json; make test updates the durations
      that SHARD uses, and the list of checks in which none may be missing, or with
      COVERAGE=1 the functions that its programs enter; make results takes the
      counts of the last make test.
  FRAMES=1000..100000000   for demo; default 1000000
      Frames per driver.
  XMIT_LLIST=0|1           for demo; default 0
      Packets in front of a qdisc are combined in Rust and enqueued in batches.
  JOBS=1..1024             for demo, test, bench, run, shell, debug, deb, model, lint
      The number of compilers at the same time (one per processor).
  KDIR=TREE                for demo, test, bench, run, shell, debug, deb, patches
      Build on your own tree instead of Debian's source: a git tree or not, with
      changes of your own, with the series (or a part of it) applied or without.
      It is copied, never changed; missing parts of the series are added.
  OVERLAY=0|1              for demo, bench, run, shell, debug, deb; default 1
      0 builds the kernel without the series.
  ACCEL=kvm|tcg            for demo, test, bench, run, shell, debug
      The accelerator of the VM, without a probe.
  SKBULK_HOST=0|1          for all; default 0
      1 uses this machine's own tools instead of the build root, if make doctor
      finds them sufficient.
  SKBULK_MIRROR=URL        for all
      The Debian mirror (default: the one that apt uses here).
  XDG_CACHE_HOME=PATH      for all
      The cache is skbulk/ in there (default: ~/.cache).

A switch (0|1) takes no and yes, too.
"""

# Set by the build root, never by hand; proxies, CI and the date of mails are the caller's.
INTERNAL = (
    "SKBULK_CACHE", "SKBULK_ROOT", "SKBULK_LLVM", "SKBULK_GUEST_ARM64", "SKBULK_PLAIN", "CI",
    "SKBULK_BEGAN", "SOURCE_DATE_EPOCH",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
)  # fmt: skip
# The names of the variables on make's command line, from the Makefile.
_GIVEN = "SKBULK_GIVEN"
# The verbs there: each of them is checked before the first one begins.
_GOALS = "SKBULK_GOALS"
_CLONE = Path(__file__).resolve().parents[3]

_VERB = re.compile(r"^  make (\w+) ", re.M)
_ENTRY = re.compile(
    r"^  (?P<name>[A-Z_]+)=(?P<kind>\S+) +for (?P<verbs>[a-z, ]+?)(?:; default (?P<default>\S+))?$",
    re.M,
)
_SWITCH = {"0": "0", "no": "0", "1": "1", "yes": "1"}
_RANGE = re.compile(r"(\d+)\.\.(\d*)")


@dataclass(frozen=True)
class Variable:
    """One entry of the table."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    default: str

    def taken_by(self, verb: str) -> bool:
        """Whether the verb takes it."""
        return verb in self.verbs or "all" in self.verbs

    def read(self, text: str) -> str:
        """The value in its canonical spelling; a wrong one is a `Failure`."""
        if self.kind == "0|1":
            value = _SWITCH.get(text.lower())
            if value is None:
                raise self._wrong(text, f"{self.name} is 0 or 1 (or no, yes)")
            return value
        if "|" in self.kind:
            if text not in self.kind.split("|"):
                raise self._wrong(text, f"{self.name} is one of {self.kind.replace('|', ', ')}")
            return text
        bounds = _RANGE.fullmatch(self.kind)
        if bounds:
            high = int(bounds[2]) if bounds[2] else None
            number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
            if number < int(bounds[1]) or (high is not None and number > high):
                limits = f"from {bounds[1]} to {high}" if high else f"of {bounds[1]} or more"
                raise self._wrong(text, f"{self.name} is a number {limits}")
            return str(number)
        if why := _KINDS[self.kind](text):
            raise self._wrong(text, *why)
        return text

    def _wrong(self, text: str, *why: str) -> Failure:
        return Failure(f"{self.name}={text}: {why[0]}", *why[1:])


_SYMBOL = re.compile(r"CONFIG_\w+=.|\s*(#|$)")


def _fragments(text: str) -> list[str]:
    for name in text.split():
        if not Path(name).is_file():
            return [f"there is no file {name}"]
        lines = Path(name).read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if not _SYMBOL.match(line):
                return [f"line {number} of {name} sets no symbol: {line[:80]}",
                        'a line is CONFIG_NAME=y, m, n, a number or a "string"']  # fmt: skip
    return []


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < 1e9
    except ValueError:
        return False


def _is_shard(text: str) -> bool:
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    return found is not None and 1 <= int(found[1]) <= int(found[2])


# Drivers with a name; others are folders.
DRIVERS = ("rust", "c", "none")


# The top Makefile of the kernel refuses such paths.
_BREAKS_KBUILD = re.compile(r"[\s:]")


def _driver(text: str) -> list[str]:
    if text in DRIVERS:
        return []
    try:
        folder = Path(text).expanduser()
    except RuntimeError:
        return ["there is no such user", "write the folder's path without ~"]
    if not folder.is_dir():
        what = "there is no such folder" if "/" in text else "there is no such driver"
        return [what, f"DRIVER is one of {', '.join(DRIVERS)}, or the folder of a driver"]
    if _BREAKS_KBUILD.search(str(folder.resolve())):
        return ["the kernel's build takes no path with blanks or colons", "rename that folder"]
    if not any((folder / name).is_file() for name in ("Kbuild", "Makefile")):
        return ["there is neither a Makefile nor a Kbuild file in that folder",
                "its one line is: obj-m += NAME.o"]  # fmt: skip
    return []


def _path(text: str) -> list[str]:
    if not os.path.isabs(text):
        return ["the path has to be absolute, from / on"]
    if _BREAKS_KBUILD.search(text):
        return ["the kernel's build takes no path with blanks or colons", "choose another one"]
    return []


def _tree(text: str) -> list[str]:
    makefile = Path(text) / "Makefile"
    if not makefile.parent.is_dir():
        return ["there is no such folder"]
    try:
        top = makefile.read_text(errors="replace")[:4000]
    except OSError:
        top = ""
    if not re.search(r"^VERSION *= *\d", top, re.M) or not re.search(r"^PATCHLEVEL *=", top, re.M):
        return ["this is no kernel tree: no Makefile in it names a version",
                "KDIR is the top folder of Linux's source"]  # fmt: skip
    return []


def _series(text: str) -> list[str]:
    known = re.findall(r"^\[([\w-]+)\]", (_CLONE / "patches/series").read_text(), re.M)
    return [] if text in known else ["there is no such series", f"there are {', '.join(known)}"]


def _unless(good: Callable[[str], object], *why: str) -> Callable[[str], Sequence[str]]:
    return lambda text: () if good(text) else why


# Functions from a value to the reasons why it is wrong, by kind.
_KINDS: Mapping[str, Callable[[str], Sequence[str]]] = {
    "FILE": _unless(os.path.isfile, "there is no such file"),
    "FILES": _fragments,
    "TREE": _tree,
    "PATH": _path,
    "URL": _unless(re.compile("https?://|file:|copy:").match,
                   "an address begins with http://, https:// or file:"),
    "SECONDS": _unless(_is_seconds, "this is a number of seconds, more than 0"),
    "I/N": _unless(_is_shard,
                   "a part is named I/N, from 1/N to N/N: SHARD=2/3 is the second of three"),
    "PERSON": _unless(re.compile(r"[^<>]+ <[^<>@\s]+@[^<>@\s]+>").fullmatch,
                      "this is no name and address",
                      'an example: AUTHOR="Jane Doe <jane@example.org>"'),
    "TAGS": tags.mistakes,
    "NAME": _series,
    "WORDS": lambda _: (),
    "NAMES": _unless(lambda text: split(text), "there is no name in it"),
    "DRIVER": _driver,
    "INTERFACE": _unless(re.compile(r"[^/\s]{1,15}").fullmatch,
                         "this is no name of an interface", "ip link shows the names"),
    "PLACE": _unless(re.compile(r"(ssh|netns):[^\s:-]\S*").fullmatch,
                     "the other end is ssh:root@host, or netns:name"),
}  # fmt: skip

VERBS = tuple(_VERB.findall(HELP))
VARIABLES = {
    found["name"]: Variable(
        found["name"],
        found["kind"],
        tuple(word.strip() for word in found["verbs"].split(",")),
        found["default"] or "",
    )
    for found in _ENTRY.finditer(HELP)
}


def split(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class Settings:
    """The variables of one call, checked. Those that the verb does not take have their defaults."""

    verb: str
    _values: Mapping[str, str]
    # Paths and other values set by the build root.
    internal: Mapping[str, str]

    def text(self, name: str) -> str:
        """The value, the default, or nothing."""
        return self._values.get(name, VARIABLES[name].default)

    def given(self, name: str) -> bool:
        """Whether the caller has set it."""
        return name in self._values

    def switch(self, name: str) -> bool:
        """The value of a switch."""
        return self.text(name) == "1"

    def number(self, name: str, default: int = 0) -> int:
        """The value of a number; `default` where the table has none."""
        return int(self.text(name) or default)

    def names(self, name: str) -> list[str]:
        """The names in a list."""
        return split(self.text(name))

    def path(self, name: str) -> Path | None:
        """An absolute path, or None."""
        text = self.text(name)
        return Path(text).resolve() if text else None

    def driver_folder(self) -> Path | None:
        """The folder that DRIVER names, if it names one."""
        text = self.text("DRIVER")
        return None if text in DRIVERS else Path(text).expanduser().resolve()


def read(verb: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and check the variables of a verb; the first mistake is a `Failure`."""
    environment = os.environ if environment is None else environment
    given, goals = environment.get(_GIVEN, "").split(), goals_of(verb, environment)
    _known(verb, given)
    values: dict[str, str] = {}
    for variable in VARIABLES.values():
        text = environment.get(variable.name, "").strip()
        if not text:
            continue
        if variable.taken_by(verb):
            values[variable.name] = variable.read(text)
        elif variable.name in given and not any(variable.taken_by(one) for one in goals):
            verbs = ", ".join(f"make {one}" for one in variable.verbs)
            raise Failure(f"{variable.name}={text}: make {verb} takes no {variable.name}",
                          f"{variable.name} is for {verbs}")  # fmt: skip
    internal = {name: environment[name] for name in INTERNAL if environment.get(name)}
    settings = Settings(verb, values, internal)
    together(settings)
    return settings


def goals_of(verb: str, environment: Mapping[str, str]) -> list[str]:
    """The verbs on make's command line, or this one alone."""
    goals = environment.get(_GOALS, "").split()
    return goals if verb in goals else [verb]


def _known(verb: str, given: Iterable[str]) -> None:
    if verb not in VERBS:
        raise Failure(f"there is no verb {verb}", f"there are {', '.join(VERBS)}")
    for name in given:
        if name in VARIABLES or name in INTERNAL or name == "SHELL":
            continue
        near = difflib.get_close_matches(name.upper(), VARIABLES, 1)
        hint = f"did you mean {near[0]}?" if near else "make help lists the variables"
        raise Failure(f"{name}: there is no such variable", hint)


def child_environment(**more: str) -> dict[str, str]:
    """The environment for a tool, with something added."""
    return {**os.environ, **more}


def main(arguments: list[str]) -> int:
    """settings.py help, or settings.py check VERB: the variables of the verb, and of all others
    on make's command line, before any work."""
    if arguments == ["help"]:
        sys.stdout.write(HELP)
        return 0
    try:
        for verb in goals_of(arguments[1], os.environ):
            read(verb)
    except Failure as error:
        print(f"error: {error}", *error.hints, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
