#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The kernel's tests of queueing disciplines (tc-testing) and packet sockets
(net), for each way to enqueue packets.
"""

import json
import re
import shutil
import tempfile
from pathlib import Path

from lib.py import KsftFailEx, KsftNamedVariant, cmd, ksft_exit, ksft_gt
from lib.py import ksft_run, ksft_variants
from lib.py import qdisc
from lib.py.support import insert_module, is_emulated, skip_program

SELFTESTS = Path(__file__).resolve().parents[3]
TDC = SELFTESTS / "tc-testing"
NET = SELFTESTS / "net"
FILES = ("fifo", "pfifo_fast", "fq")
# An address, and an MTU that makes segmentation necessary.
UDPGSO = ("./in_netns.sh sh -c 'ip addr add dev lo 10.0.0.1/32 && "
          "ip link set dev lo mtu 1500 && ./udpgso -4 -C'")
PROGRAMS = {
    "psock_snd": "./psock_snd.sh",
    "psock_tpacket": "./in_netns.sh ./psock_tpacket",
    "txring_overwrite": "./in_netns.sh ./txring_overwrite",
    "udpgso": UDPGSO,
}
RESULT = re.compile(r"^(ok|not ok) \d+ (\w+)\b.*?(# skipped.*)?$")
PATIENCE = 600


class Tdc:
    """
    Runs each file of tdc cases once per way, in a copy that tdc can write to.
    """

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp()) / "tdc"
        self._results = {}

    @staticmethod
    def cases(name):
        """ Return the ids of the cases in a file. """
        path = TDC / f"tc-tests/qdiscs/{name}.json"
        cases = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return [case["id"] for case in cases]

    def prepare(self):
        """ Copy tdc and load the devices that its plugins need. """
        for module in ("dummy", "ifb"):
            if not Path(f"/sys/module/{module}").exists():
                insert_module(module)
        shutil.copytree(TDC, self._folder)

    def _run(self, how, name):
        qdisc.way(how)
        command = f"./tdc.py -f tc-tests/qdiscs/{name}.json --format tap --outfile out.tap"
        said = cmd(f"cd {self._folder} && {command} 2>&1", shell=True, fail=False,
                   timeout=PATIENCE)
        out = self._folder / "out.tap"
        lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
        out.unlink(missing_ok=True)
        found = {}
        for line in lines:
            if match := RESULT.match(line):
                found[match[2]] = match[1] if not match[3] else match[3]
        return found, (lines + said.stdout.splitlines())[-20:]

    def check(self, how, name, ident):
        """ Check the result of one case. """
        if (how, name) not in self._results:
            self._results[how, name] = self._run(how, name)
        found, words = self._results[how, name]
        if found.get(ident) != "ok":
            raise KsftFailEx(f"tdc: {found.get(ident, 'no result')}: " + " | ".join(words))

    def close(self):
        """ Remove the copy. """
        shutil.rmtree(self._folder.parent)


@ksft_variants([KsftNamedVariant(f"{how}_{name}_{ident}", how, name, ident)
                for how in qdisc.WAYS for name in FILES for ident in Tdc.cases(name)])
def tdc(runner, how, name, ident):
    """ A case of tc-testing passes. """
    runner.check(how, name, ident)


@ksft_variants([KsftNamedVariant(f"{how}_{name}", how, command)
                for how in qdisc.WAYS for name, command in PROGRAMS.items()])
def net(_runner, how, command):
    """ A program of net passes. """
    qdisc.way(how)
    cmd(f"cd {NET} && {command}", shell=True, timeout=PATIENCE)


def prepare(runner):
    """ tdc can be prepared, and each of its files has cases. """
    for name in FILES:
        ksft_gt(len(Tdc.cases(name)), 0, name)
    runner.prepare()


def main():
    """ Ksft boiler plate main """

    if not qdisc.has_ways():
        skip_program("this kernel has no CONFIG_NET_XMIT_LLIST_RUST")
    if is_emulated():
        skip_program("takes too long where the machine is emulated")
    runner = Tdc()
    try:
        ksft_run([prepare, tdc, net], args=(runner, ))
    finally:
        runner.close()
    ksft_exit()


if __name__ == "__main__":
    main()
