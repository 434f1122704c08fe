#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
PCI over virtio, which connects User-Mode Linux to the ports: the module
um_pci_check makes every kind of access, in several contexts at once.
"""

import re
from pathlib import Path

from lib.py import KsftFailEx, KsftNamedVariant, ksft_disruptive
from lib.py import ksft_exit, ksft_ge, ksft_run, ksft_variants
from lib.py.nicmodel import judged, looks_away
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import insert_module, kernel_log, remove_module, skip_program

MODULE = "um_pci_check"
CASES = ("two threads", "thread and interrupt", "memcpy_toio", "memcpy_fromio", "memset_io",
         "ring registers", "ring registers after reset", "interrupt for every message",
         "interrupt while disabled", "interrupt before sleep")
VERDICT = re.compile(rf"{MODULE}: (not )?ok ([^:\n]+)(?:: (.*))?$", re.M)


def verdicts():
    """
    Return the error of each access reported by the module, empty if it passed.
    """
    return {match[2].strip(): (match[3] or "wrong") if match[1] else ""
            for match in VERDICT.finditer(kernel_log())}


@ksft_disruptive
def unload(cfg):
    """ The driver can be unloaded. """
    cfg.card.unload()


@ksft_disruptive
def all_accesses(cfg):
    """ The module loads, which needs all of its accesses to pass. """
    # The module writes anything anywhere.
    with looks_away(cfg.model):
        insert_module(MODULE)


@ksft_variants([KsftNamedVariant(name.replace(" ", "_"), name) for name in CASES])
def access(_cfg, name):
    """ One kind of access passes. """
    found = verdicts()
    if name not in found:
        raise KsftFailEx("the module has said nothing of it")
    if found[name]:
        raise KsftFailEx(found[name])


def no_other_access(_cfg):
    """ No other access has failed. """
    wrong = [f"{name}: {why}" for name, why in verdicts().items() if why]
    if wrong:
        raise KsftFailEx("; ".join(wrong))


@ksft_disruptive
def load(cfg):
    """ The driver can be loaded again. """
    if Path(f"/sys/module/{MODULE}").exists():
        remove_module(MODULE)
    cfg.card.load(wait=False)


def long_answers(cfg):
    """ Answers of the model that are longer than a terminal's buffer arrive. """
    for _ in range(3):
        ksft_ge(len(cfg.model.ask("help")["requests"]), 10)


def ports_come_back(cfg):
    """ Each port has an interface again. """
    cfg.card.find()


def main():
    """ Ksft boiler plate main """

    machine = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if "User Mode Linux" not in machine:
        skip_program("only User-Mode Linux has PCI over virtio")
    with NicModelEnv(__file__) as cfg:
        ksft_run(judged([long_answers, unload, all_accesses, access, no_other_access, load,
                         ports_come_back, forwards_after("load")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
