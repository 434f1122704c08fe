#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" Memory leaks of all programs that ran before: run this one last. """

import os
import time
from pathlib import Path

from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_run
from lib.py.nicmodel import RUST
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import skip_program

LEAKS = Path("/sys/kernel/debug/kmemleak")


@ksft_disruptive
def unload(cfg):
    """ The driver can be unloaded. """
    cfg.card.unload()
    ksft_eq([port.find() for port in cfg.ports], [False, False])


def kmemleak(_cfg):
    """
    kmemleak reports nothing. It takes an object for lost only after some
    seconds, and a stale pointer may hide one from the first scan.
    """
    time.sleep(6)
    LEAKS.write_text("scan", encoding="utf-8")
    time.sleep(1)
    LEAKS.write_text("scan", encoding="utf-8")
    ksft_eq(LEAKS.read_text(encoding="utf-8")[:4000], "")


@ksft_disruptive
def load(cfg):
    """ The driver can be loaded again. """
    cfg.card.load(wait=False)


def ports_come_back(cfg):
    """ Each port has an interface again. """
    cfg.card.find()


def main():
    """ Ksft boiler plate main """

    if not os.access(LEAKS, os.W_OK):
        skip_program("this kernel has no kmemleak")
    with NicModelEnv(__file__, drivers=RUST,
                     why="the driver is not under test") as cfg:
        ksft_run(judged([unload, kmemleak, load, ports_come_back, forwards_after("load")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
