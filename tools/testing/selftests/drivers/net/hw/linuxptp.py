#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Clocks of NICs under linuxptp. ptp4l has the clock of a port follow that of its peer over the
cable, phc2sys that of the machine, although the clocks drift. SECONDS in the environment is how
long phc2sys is watched. Without it, this does not run: in step within 100 ns takes a quiet machine.
"""

import contextlib
import os
import re
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from lib.py import KsftNamedVariant, NetNSEnter, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge
from lib.py import ksft_lt, ksft_pr, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.ptp_clock import ETH_P_1588, FOLLOW_UP, RX_HARDWARE, RAW_HARDWARE, SECOND
from lib.py.ptp_clock import SO_TIMESTAMPING, SYNC, Clock, clock_number, received
from lib.py.support import SOL_PACKET, skip_program, wait_until

# Parts per billion by which the clock of port 1 is faster, and nanoseconds that frames are under
# way in the cable.
DRIFT, DELAY = 50_000, 500
# Nanoseconds by which clocks may differ that are in step, and as many messages in a row as show it.
LIMIT, ROW = 100, 16
# Nanoseconds after which a clock has not been corrected for too long: its increments are 75 ppb
# apart, and a busy machine may stand still for seconds.
PAUSE = SECOND // 4
# Reads of phc2sys in a second, and as many as take the servo to get over a wrong one.
RATE = 8
WINDOW = 5 * RATE
EVENTS, GENERAL = 319, 320
# As many of the last lines of a program that did not do its work.
LINES = 40
ETH_P_ALL, ETH_P_IP = 3, 0x0800
PACKET_ADD_MEMBERSHIP, PACKET_MR_ALLMULTI = 1, 2

# A busy machine is late, which does not mean that a port or the peer is out of order. A neighbour's
# answer has to come before the next request, so that one waits for a second.
CONFIG = """[global]
network_transport {transport}
delay_mechanism {mechanism}
priority1 {priority}
logSyncInterval -4
logMinDelayReqInterval -4
logMinPdelayReqInterval 0
logAnnounceInterval -2
announceReceiptTimeout 100
summary_interval -4
sanity_freq_limit 0
tx_timestamp_timeout 5000
fault_reset_interval ASAP
uds_address {folder}/uds
uds_ro_address {folder}/uds-ro
"""


@contextlib.contextmanager
def _running(*words):
    """ Run a program in a block, which gets the file of what it says. """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".log") as log:
        with open(log.name, "w", encoding="utf-8") as out:
            # pylint: disable=consider-using-with
            process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        is_over = False
        try:
            yield Path(log.name)
            ksft_eq(process.poll(), None, f"{words[0]} goes on")
            is_over = True
        finally:
            process.terminate()
            process.wait()
            if not is_over or process.returncode not in (0, -15, 255):
                for line in log.read().splitlines()[-LINES:]:
                    ksft_pr(line)


@contextlib.contextmanager
def _ptp4l(ifname, folder, priority, way, *words):
    place = Path(folder) / ifname
    place.mkdir()
    config = place / "config"
    transport, mechanism = way
    config.write_text(CONFIG.format(transport=transport, mechanism=mechanism, priority=priority,
                                    folder=place), encoding="utf-8")
    with _running("ptp4l", "-i", ifname, "-f", str(config), "-m", "-q", *words) as log:
        yield log


class Sniffer:
    """ The messages that a port receives, by which its clock is compared with the sender's. """

    def __init__(self, ifname):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.sock.bind((ifname, ETH_P_ALL))
        group = struct.pack("=iHH8s", socket.if_nametoindex(ifname), PACKET_MR_ALLMULTI, 0, b"")
        self.sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, group)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_HARDWARE | RAW_HARDWARE)
        self.arrived = {}
        self.last = 0

    def __enter__(self):
        return self

    def __exit__(self, ex_type, ex_value, ex_tb):
        self.sock.close()

    @staticmethod
    def _body(frame):
        kind = int.from_bytes(frame[12:14])
        if kind == ETH_P_1588:
            return frame[14:]
        is_udp = kind == ETH_P_IP and frame[23] == socket.IPPROTO_UDP
        return frame[42:] if is_udp and int.from_bytes(frame[36:38]) in (EVENTS, GENERAL) else None

    def _times(self):
        """ Return when a Sync left, by the sender's clock, and when it arrived, by the port's. """
        while True:
            frame, stamp = received(self.sock, 60)
            body = self._body(frame)
            if body is None or len(body) < 44:
                continue
            kind, number = body[0] & 0xf, body[30:32]
            if kind == SYNC and stamp:
                self.arrived[number] = stamp
            elif kind == FOLLOW_UP and number in self.arrived:
                seconds, nanoseconds = int.from_bytes(body[34:40]), int.from_bytes(body[40:44])
                return seconds * SECOND + nanoseconds, self.arrived.pop(number)

    def offset(self):
        """ Return by how much the port's clock is ahead at a Sync that was soon after another. """
        while True:
            left, arrived = self._times()
            soon, self.last = left - self.last < PAUSE, left
            if soon:
                return arrived - left - DELAY


def _servo(log):
    """ Return the frequency that ptp4l has set last, and the delay of the cable that it found. """
    said = re.findall(r"freq +([+-]\d+) path delay +(-?\d+)", log.read_text("utf-8"))
    return map(int, said[-1]) if said else (0, 0)


def _in_step(sniffer, log):
    """
    Return whether the clocks are in step for some messages in a row. The delay is wrong at first,
    while the frequency is.
    """
    if not all(abs(sniffer.offset()) < LIMIT for _ in range(ROW)):
        return False
    frequency, delay = _servo(log)
    return abs(abs(frequency) - DRIFT) < 1_000 and abs(delay - DELAY) < 50


@ksft_variants([KsftNamedVariant("ethernet", ("L2", "E2E")),
                KsftNamedVariant("udp", ("UDPv4", "E2E")),
                KsftNamedVariant("peer_to_peer", ("L2", "P2P"))])
@ksft_disruptive
def ptp4l_follows(cfg, way):
    """ The clock of a port follows that of its peer to within 100 ns, by the stamps. """
    cfg.model.fault(1, "drift", value=DRIFT)
    for port in (0, 1):
        cfg.model.fault(port, "cable_delay", value=DELAY)
    try:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            with NetNSEnter(cfg.remote_ns):
                stack.enter_context(_ptp4l(cfg.remote_ifname, folder, 100, way))
            log = stack.enter_context(_ptp4l(cfg.ifname, folder, 200, way, "-s"))
            sniffer = stack.enter_context(Sniffer(cfg.ifname))
            wait_until(lambda: _in_step(sniffer, log), 40, "the clocks are in step")
            offsets = [sniffer.offset() for _ in range(4 * ROW)]
            ksft_lt(max(map(abs, offsets)), LIMIT, offsets)
            frequency, delay = _servo(log)
            ksft_pr(f"{len(offsets)} offsets, at most {max(map(abs, offsets))} ns, frequency "
                    f"{frequency} ppb, delay {delay} ns")
    finally:
        for port in (0, 1):
            cfg.model.mend(port)
        cfg.clock.frequency(0)


def _said(log):
    """ Return offsets and delays that phc2sys has read so far, when it adjusts the frequency. """
    found = re.findall(r"offset +(-?\d+) s2 freq +[+-]\d+ delay +(\d+)", log.read_text("utf-8"))
    return [tuple(map(int, pair)) for pair in found]


def _close(pairs):
    """
    Return, of the reads that have so many before them, those by which the clock is off by half of
    the time that the read took, or less; or one of those before: what a busy machine reads slowly
    has the servo err by that, for seconds.
    """
    return [abs(pairs[index][0]) <= max(delay for _, delay in pairs[index - WINDOW:index + 1]) / 2
            for index in range(WINDOW, len(pairs))]


def _are_close(pairs):
    """ Return whether at least nine of ten are. """
    close = _close(pairs)
    return 10 * sum(close) >= 9 * len(close)


@ksft_disruptive
def phc2sys_follows(cfg):
    """ The clock of a port follows the machine's as closely as it can be read, and stays so. """
    lines = WINDOW + RATE * int(os.environ.get("SECONDS") or 15)
    cfg.model.fault(0, "drift", value=DRIFT)
    try:
        with _running("phc2sys", "-s", "CLOCK_REALTIME", "-c", f"/dev/ptp{cfg.clock.number}",
                      "-O", "0", "-R", f"{RATE}", "-N", "25", "-m", "-q") as log:
            wait_until(lambda: (len(_said(log)) >= WINDOW + ROW
                                and all(_close(_said(log))[-ROW:])), 120, "they are in step")
            begin = len(_said(log)) - WINDOW
            wait_until(lambda: len(_said(log)) >= begin + lines, 60 + lines, "it goes on", 0.5)
            pairs = _said(log)[begin:]
            # Between two times of the machine, as far as it says that it knows.
            before, now, after = time.time_ns(), cfg.clock.now(), time.time_ns()
            delay = max(delay for _, delay in pairs)
            ksft_ge(now, before - delay)
            ksft_ge(after + delay, now)
        # At the end as at the beginning.
        for part in (pairs[:len(pairs) // 2], pairs[len(pairs) // 2 - WINDOW:]):
            offset, delay = (statistics.median(values) for values in zip(*part, strict=True))
            ksft_eq(_are_close(part), True, f"offset {offset} ns, delay {delay} ns: {part}")
            ksft_pr(f"{len(part)} reads, medians: offset {offset} ns, delay {delay} ns")
    finally:
        cfg.model.mend(0)
        cfg.clock.frequency(0)


def main():
    """ Ksft boiler plate main """

    for program in ("ptp4l", "phc2sys"):
        if not shutil.which(program):
            skip_program(f"needs {program} of linuxptp")
    if not os.environ.get("SECONDS"):
        skip_program("takes a quiet machine: SECONDS= asks for it")
    with PeerEnv(__file__, v6=False) as cfg:
        cfg.reach()
        with Clock(clock_number(cfg.ifname)) as cfg.clock:
            ksft_run(cfg.judged([ptp4l_follows, phc2sys_follows]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
