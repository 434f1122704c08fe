#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Failing memory allocations: at probe, at open, and in the data path.

The checkers of DMA mappings, of references and of debug objects switch
themselves off when their own allocations fail: run this program after those
that need them.
"""

import contextlib
import fcntl
import glob
import os
import re
import socket
import struct
import time
from pathlib import Path

from lib.py import KsftFailEx, KsftNamedVariant, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_gt, ksft_lt, ksft_pr, ksft_run
from lib.py import ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import driver_stats, make_room, provokes, skip_program

DEBUGFS = Path("/sys/kernel/debug")
FAIL_NTH = "/proc/thread-self/fail-nth"
SHRINK = "/proc/sys/vm/drop_caches"
KINDS = ("failslab", "fail_page_alloc")
# How many allocations may fail, which the kernel counts down.
TIMES = 1_000_000_000

SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
ETH_P_ALL = 3


class Interface:
    """ Set an interface up and down without another process. """

    def __init__(self, name):
        self.name = name.encode()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def _set(self, up):
        asked = struct.pack("16sH22x", self.name, 0)
        flags = struct.unpack_from("H", fcntl.ioctl(self.socket, SIOCGIFFLAGS, asked), 16)[0]
        flags = flags | IFF_UP if up else flags & ~IFF_UP
        fcntl.ioctl(self.socket, SIOCSIFFLAGS, struct.pack("16sH22x", self.name, flags))

    def do(self):
        """ Open the interface. """
        self._set(True)

    def undo(self):
        """ Close the interface. """
        self._set(False)


class Binding:
    """ Bind a device to its driver and unbind it. """

    def __init__(self, device, driver):
        folder = Path("/sys/bus/pci/drivers") / driver
        self.device = device.encode()
        self.bind = os.open(folder / "bind", os.O_WRONLY)
        self.unbind = os.open(folder / "unbind", os.O_WRONLY)

    def do(self):
        """ Probe the device. """
        os.write(self.bind, self.device)

    def undo(self):
        """ Remove the device. """
        os.write(self.unbind, self.device)


def _knob(kind, name, value):
    (DEBUGFS / kind / name).write_text(str(value), encoding="utf-8")


def _fail_each(subject, seconds, dense):
    """
    Run an operation again and again, each time with a later allocation
    failing, until it needs fewer allocations than that; from @dense on, only
    every seventh one fails. The kernel counts the allocations of this thread
    down (fail-nth). The operation must return an error or succeed regardless,
    and must not leave anything behind that makes the next round fail.
    """
    for kind in KINDS:
        for name, value in (("ignore-gfp-wait", "N"), ("verbose", 0), ("probability", 0)):
            _knob(kind, name, value)
    _knob("fail_page_alloc", "min-order", 0)
    handle = os.open(FAIL_NTH, os.O_RDWR)
    nth, failed, survived = 1, 0, 0
    end = time.monotonic() + seconds
    left = 0
    while left == 0 and time.monotonic() < end:
        os.pwrite(handle, str(nth).encode(), 0)
        error = None
        try:
            subject.do()
        except OSError as problem:
            error = problem
        left = int(os.pread(handle, 16, 0).split(b"\0")[0])
        os.pwrite(handle, b"0", 0)
        if error is None:
            subject.undo()
            survived += 1
        else:
            failed += 1
            # The operation ended before allocation nth: all were tried.
            if left != 0:
                raise KsftFailEx(f"with nothing failing: {error}")
        nth += 1 if nth < dense else 7
    os.close(handle)
    ksft_pr(f"{failed} failures reported, {survived} survived, up to allocation {nth}"
            f"{'' if left else ', cut for time'}")
    ksft_gt(failed, 0, "failures reported")


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_disruptive
def open_fails(cfg):
    """ Each allocation of ndo_open fails in turn. """
    cfg.both("down")
    _fail_each(Interface(cfg.ifname), 40, 100000)


@ksft_disruptive
def probe_fails(cfg):
    """ Each allocation of probe fails in turn. """
    cfg.both("down")
    cfg.ports[0].unbind()
    _fail_each(Binding(cfg.ports[0].pci, cfg.driver), 60, 60)


@ksft_disruptive
def probe_still_works(cfg):
    """ The driver can still bind to the device. """
    cfg.ports[0].bind(cfg.driver)
    cfg.card.find()


def data_path_is_armed(cfg):
    """
    Fault injection is set up for atomic allocations: of skbs, by their slab
    caches, and of pages. A process may need such a page as well, so that no
    process starts and no file is opened while they fail.
    """
    for kind in KINDS:
        for name, value in (("ignore-gfp-wait", "Y"), ("verbose", 0), ("times", TIMES)):
            _knob(kind, name, value)
    _knob("fail_page_alloc", "min-order", 0)
    _knob("failslab", "cache-filter", "Y")
    caches = 0
    for path in glob.glob("/sys/kernel/slab/skbuff_*/failslab"):
        with contextlib.suppress(OSError):
            Path(path).write_text("1", encoding="utf-8")
            caches += 1
    ksft_gt(caches, 0, "slab caches of skbs that can fail")
    for kind in KINDS:
        cfg.knobs[kind] = os.open(DEBUGFS / kind / "probability", os.O_WRONLY)


def _failed():
    """ Return how many allocations of the data path have failed until now. """
    return sum(TIMES - int((DEBUGFS / kind / "times").read_text(encoding="utf-8"))
               for kind in KINDS)


def _fail_in(cfg, percent, kinds=KINDS):
    for kind in kinds:
        if kind in cfg.knobs:
            os.write(cfg.knobs[kind], str(percent).encode())


def _generate(cfg, count, size, percent, kinds=KINDS):
    """ Send frames while a share of the allocations fails. """
    request = cfg.request(count, size, timeout_ms=20000)
    _fail_in(cfg, percent, kinds)
    try:
        return cfg.model.ask("generate", **request)
    finally:
        _fail_in(cfg, 0, kinds)


def _check_data_path(cfg, percent, count, size):
    """
    Check the frames that come out while allocations fail. Most frames need none, as SKBs are
    allocated in bulk and buffers are used again: bursts follow until one has failed. Heads may
    wait in a pool, which its shrinker empties.
    """
    cfg.set_up()
    before, end = _failed(), time.monotonic() + 60
    while _failed() == before and time.monotonic() < end:
        Path(SHRINK).write_text("2", encoding="ascii")
        answer = _generate(cfg, count, size, percent)
        ksft_pr(f"{answer['forwarded']} of {answer['sent']} came out, "
                f"{_failed() - before} allocations have failed")
        for what in ("duplicated", "damaged"):
            ksft_eq(answer[what], 0, answer)
        ksft_gt(answer["sent"], 0, answer)
    ksft_gt(_failed(), before, "allocations that have failed")
    cfg.settle()


@ksft_variants([
    KsftNamedVariant("small_frames", 2000, 60),
    KsftNamedVariant("large_frames", 300, 1514),
])
def every_tenth_fails(cfg, count, size):
    """ Every tenth allocation of the data path fails: no frame is damaged. """
    _check_data_path(cfg, 10, count, size)


def every_one_fails(cfg):
    """ Every allocation fails: transmitted buffers are recycled. """
    _check_data_path(cfg, 100, 2000, 60)


def _page_pool_functions():
    """ Return the address range of the page pool's allocator. """
    with open("/proc/kallsyms", encoding="utf-8") as symbols:
        lines = symbols.readlines()
    found = [line[:16] for line in lines
             if re.match(r"(__)?page_pool_alloc", line[19:])]
    after = min(line[:16] for line in lines if line[:16] > max(found))
    return min(found), after


def rx_ring_runs_empty(cfg):
    """
    The receive ring runs empty. A socket holds the frames and their buffers,
    and without new pages no frame arrives, nor an interrupt. The driver has to
    recover by itself as soon as there is memory.

    Only page pool allocations fail: without skbs the buffers would be freed.
    """
    first, after = _page_pool_functions()
    _knob("fail_page_alloc", "require-start", f"0x{first}")
    _knob("fail_page_alloc", "require-end", f"0x{after}")
    before = driver_stats(cfg.ifname)["rx_no_buffer"]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                       socket.htons(ETH_P_ALL)) as holder:
        make_room(holder, 256 << 20)
        holder.bind((cfg.ifname, ETH_P_ALL))
        answer = _generate(cfg, 4000, 60, 100, ("fail_page_alloc", ))
    cfg.empty = driver_stats(cfg.ifname)["rx_no_buffer"] - before
    ksft_pr(f"{answer['forwarded']} of 4000 came out, {cfg.empty} times no buffer")
    ksft_lt(answer["forwarded"], 2000, answer)


def rx_ring_empty_is_counted(cfg):
    """ The driver counts missing buffers. """
    ksft_gt(cfg.empty, 0)


def main():
    """ Ksft boiler plate main """

    if not os.path.exists(FAIL_NTH) or not (DEBUGFS / "failslab").is_dir():
        skip_program("this kernel has no fault injection")
    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver is not under test") as cfg:
        cfg.knobs, cfg.empty = {}, 0
        provokes("checker out of memory")
        try:
            ksft_run(judged([set_up, open_fails, forwards_after("open_fails"),
                             probe_fails, probe_still_works, forwards_after("probe_fails"),
                             data_path_is_armed,
                             every_tenth_fails, forwards_after("every_tenth_fails", 2000),
                             every_one_fails, forwards_after("every_one_fails", 2000),
                             rx_ring_runs_empty, rx_ring_empty_is_counted,
                             forwards_after("rx_ring_empty", 2000)]), args=(cfg, ))
        finally:
            _fail_in(cfg, 0)
    ksft_exit()


if __name__ == "__main__":
    main()
