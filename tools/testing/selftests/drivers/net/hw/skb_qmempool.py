#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
skb heads exchanged between CPUs by a pool (CONFIG_SKB_QMEMPOOL), switched on
and off under traffic, and with CPUs going offline.
"""

import glob
import time
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_in, ksft_raises, ksft_run, ksft_true
from lib.py import ksft_variants
from lib.py.judge import judged
from lib.py.nicmodel import NicModelEnv, forwards_after, traffic_intact
from lib.py.support import skip_program

SWITCH = Path("/proc/sys/net/core/skb_qmempool")
STATISTICS = Path("/sys/kernel/debug/qmempool/skb")


def _switch(state):
    SWITCH.write_text(state, encoding="utf-8")
    ksft_eq(SWITCH.read_text(encoding="utf-8").strip(), state)


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def pool_on(_cfg):
    """ The pool can be switched on. """
    _switch("1")


@ksft_variants([
    KsftNamedVariant("20000_of_60_bytes", 20000, 60, 0),
    KsftNamedVariant("2000_of_1514_bytes", 2000, 1514, 0),
    KsftNamedVariant("2000_the_other_way", 2000, 60, 1),
])
def frames(cfg, count, size, port):
    """ Frames are forwarded with skb heads of the pool. """
    cfg.check_forwarded(count, size, port)


def statistics(_cfg):
    """ debugfs shows statistics of the pool. """
    ksft_in("hits", STATISTICS.read_text(encoding="utf-8"))


def no_third_position(_cfg):
    """ A value other than 0 and 1 is refused. """
    with ksft_raises(OSError):
        SWITCH.write_text("2", encoding="utf-8")
    ksft_eq(SWITCH.read_text(encoding="utf-8").strip(), "1")


def pool_off(_cfg):
    """ The pool can be switched off. """
    _switch("0")


def pool_is_gone(_cfg):
    """ The statistics go with the pool. """
    ksft_true(not STATISTICS.exists())


@ksft_disruptive
def on_and_off(cfg):
    """ The pool is switched on and off under traffic. """
    cfg.start_traffic()
    for _ in range(10):
        for state in ("1", "0"):
            _switch(state)
            time.sleep(0.2)


def pool_on_again(_cfg):
    """ The pool can be switched on again. """
    _switch("1")


@ksft_disruptive
def cpu_offline_and_online(cfg):
    """ A CPU goes offline and online under traffic. """
    last = sorted(glob.glob("/sys/devices/system/cpu/cpu[0-9]*/online"))
    cfg.start_traffic()
    if not last:
        raise KsftSkipEx("no CPU can go offline")
    for _ in range(10):
        for state in ("0", "1"):
            Path(last[-1]).write_text(state, encoding="utf-8")
            time.sleep(0.3)


def main():
    """ Ksft boiler plate main """

    if not SWITCH.exists():
        skip_program("this kernel has no CONFIG_SKB_QMEMPOOL")
    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="one driver is enough") as cfg:
        try:
            ksft_run(judged([set_up, pool_on, frames, statistics, no_third_position,
                             pool_off, pool_is_gone,
                             on_and_off, traffic_intact("on_and_off"),
                             forwards_after("on_and_off"),
                             pool_on_again, cpu_offline_and_online,
                             traffic_intact("cpu_offline"),
                             forwards_after("cpu_offline")]), args=(cfg, ))
        finally:
            SWITCH.write_text("0", encoding="utf-8")
    ksft_exit()


if __name__ == "__main__":
    main()
