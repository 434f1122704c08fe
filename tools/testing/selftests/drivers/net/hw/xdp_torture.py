#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Random changes of all that XDP has to do with, in any order, under traffic into both ports:
programs, the MTU, rings and queues, sockets whose owner is killed, and ports that go down or away.
After each round, frames have to arrive whole and in order by the program that is there then, and in
the end no page may be missing.

Variables: SEED=, and the number of rounds COUNT=, or SECONDS= instead. To repeat a failure, FIRST=
is the number of the first round.
"""

import os
import random
import time

from lib.py import CmdExitFailure, KsftFailEx, cmd, ksft_disruptive, ksft_ge, ksft_pr
from lib.py.af_xdp import NEED_WAKEUP, ZEROCOPY
from lib.py.bpf import XDP_DROP, XDP_PASS, XDP_TX, redirect_program, socket_map, socket_program
from lib.py.bpf import xdp_program
from lib.py.nicmodel import PATIENCE_MS, PEERS, forwards_after
from lib.py.nicmodel.env import Traffic
from lib.py.support import Task, pages_back, restart_rx_queue, rounds, wait_until
from xdp_verdicts import attach, detach, run
from xsk import reflect_forever

DEFAULT_SEED = 1
MTUS = (1400, 1500, 1510, 1766, 3050, 9000)
SHORT = 1500
# Changes in a round.
CHANGES = 8
FRAMES = 300
# Ways in which programs move frames.
MOVES = ({}, {"head": -32}, {"head": 8, "tail": -4}, {"tail": 40}, {"meta": True})


class Torture:
    """ The state of both ports, and what changes it. """

    def __init__(self, cfg, seed):
        self.cfg, self.seed, self.random = cfg, seed, random.Random()
        self.table = socket_map(cfg.queues)
        self.owner = None
        self.done, self.refused = [], 0

    def close(self):
        """ End the owner of sockets, and forget their map. """
        self.killed()
        os.close(self.table)

    def start(self, number):
        """ Begin a round. """
        self.random.seed(f"{self.seed} {number}")
        self.done.clear()

    def _port(self):
        return self.random.choice(self.cfg.ports)

    def _set(self, command, *, refusable=False):
        """ Change a setting, which the kernel may refuse if what else is set forbids that. """
        self.done.append(command)
        try:
            cmd(command)
        except CmdExitFailure as error:
            if not refusable:
                raise
            self.refused += 1
            self.done[-1] += f": {error.cmd.stderr.strip()}"

    def _attach(self, port, program, what):
        self.done.append(f"{port.ifname}: {what}")
        try:
            attach(port, self.cfg.programs.name(program))
        except CmdExitFailure as error:
            # The MTU is greater than a program for one buffer takes.
            if "the MTU is more than" not in error.cmd.stderr:
                raise
            self.refused += 1
            self.done[-1] += ": refused"

    def program(self):
        """ Attach or replace a program that moves frames. """
        action = self.random.choice((XDP_PASS, XDP_DROP, XDP_TX))
        moves, frags = self.random.choice(MOVES), self.random.choice((True, False))
        self._attach(self._port(), xdp_program(action, **moves, frags=frags),
                     f"action {action} {moves} frags {frags}")

    def redirects(self):
        """ Attach or replace a program that redirects frames, to either port. """
        target = self._port()
        self._attach(self._port(), redirect_program(target.ifindex(), frags=True),
                     f"to port {target.number}")

    def to_sockets(self):
        """ Attach or replace a program that redirects frames to sockets, where there are some. """
        self._attach(self.cfg.ports[0], socket_program(self.table, XDP_DROP), "to sockets")

    def nothing(self):
        """ Detach a program, if there is one. """
        port = self._port()
        self.done.append(f"{port.ifname}: no program")
        detach(port)

    def mtu(self):
        """ Change the MTU. """
        self._set(f"ip link set {self._port().ifname} mtu {self.random.choice(MTUS)}",
                  refusable=True)

    def rings(self):
        """ Change the sizes of rings. """
        self._set(f"ethtool -G {self._port().ifname} rx {64 << self.random.randrange(5)}"
                  f" tx {64 << self.random.randrange(5)}", refusable=True)

    def queues(self):
        """ Change the number of queues. Those with sockets have to stay. """
        self._set(f"ethtool -L {self._port().ifname} combined"
                  f" {self.random.randint(1, self.cfg.queues)}", refusable=True)

    def restart(self):
        """ Restart a queue. """
        port, queue = self._port(), self.random.randrange(self.cfg.queues)
        self.done.append(f"{port.ifname}: queue {queue} restarts")
        # One that is not there, or a port that is down.
        try:
            restart_rx_queue(port.ifindex(), queue)
        except CmdExitFailure:
            cmd("rmmod rx_queue_restart", fail=False)
            self.refused += 1

    def down(self):
        """ Take a port down, and up. """
        port = self._port()
        self._set(f"ip link set {port.ifname} down")
        if self.random.random() < 0.5:
            self.random.choice((self.mtu, self.rings, self.nothing, self.bound))()
        self._set(f"ip link set {port.ifname} up")

    def link(self):
        """ Take a link away, and bring it back. """
        number = self._port().number
        self.done.append(f"link of port {number} lost")
        self.cfg.model.link(number, up=False)
        self.random.choice((self.restart, self.nothing, self.program, self.killed))()
        self.cfg.model.link(number)

    def bound(self):
        """ Bind sockets to all queues of port 0, in another process. """
        if self.owner:
            return
        flags = ZEROCOPY | self.random.choice((0, NEED_WAKEUP))
        self.done.append("sockets")
        self.owner = Task(reflect_forever, self.cfg.ports[0].ifindex(), 1, flags, self.table)
        time.sleep(self.random.random() / 20)

    def killed(self):
        """ Kill the owner of the sockets. """
        if self.owner:
            self.done.append("killed")
            self.owner.kill()
            self.owner = None

    def gone(self):
        """ Unbind a port from its driver, and bind it again. """
        port = self._port()
        self.done.append(f"port {port.number} unbound")
        port.unbind()
        port.bind(self.cfg.driver)
        self.cfg.card.find()
        cmd(f"ethtool -L {port.ifname} combined {self.cfg.queues}", fail=False)
        self.cfg.set_up()

    def change(self):
        """ Do one of all that. """
        often = [self.program, self.redirects, self.to_sockets, self.nothing, self.restart,
                 self.bound, self.killed]
        seldom = [self.mtu, self.rings, self.queues, self.down, self.link]
        rare = [self.gone]
        self.random.choice(often * 3 + seldom * 2 + rare)()


def _settled(cfg, torture):
    """ Take everything back to the state that programs of a check can rely on. """
    torture.killed()
    cfg.set_up()
    for port in cfg.ports:
        detach(port)
        wait_until(lambda port=port: cmd(f"ip link set {port.ifname} mtu {SHORT}",
                                         fail=False).ret == 0, 20, "sockets have gone")
        cmd(f"ethtool -G {port.ifname} rx 512 tx 512", fail=False)
        cmd(f"ethtool -L {port.ifname} combined {cfg.queues}", fail=False)
    cfg.set_up()
    cfg.settle()


def _check(cfg, torture):
    """ Check that each frame goes where a program sends it, on both ports. """
    for port in cfg.ports:
        other = cfg.ports[1 - port.number]
        same = {"port": port.number, "expect_ttl": 64, "expect_src_mac": PEERS[port.number],
                "expect_dst_mac": port.mac()}
        size = torture.random.choice((60, 128, 1000, 1514))
        for program, fields in ((xdp_program(XDP_PASS), {"port": port.number}),
                                (xdp_program(XDP_TX), same | {"to": port.number}),
                                (redirect_program(other.ifindex()), same)):
            attach(port, cfg.programs.name(program))
            answer = cfg.generate(FRAMES, size, stall_ms=PATIENCE_MS, drain_ms=PATIENCE_MS,
                                  **fields)
            # The first round that fails tells of all that was done.
            if ([answer[name] for name in ("sent", "forwarded")] != [FRAMES] * 2
                    or any(answer[name] for name in ("duplicated", "damaged", "reordered"))):
                raise KsftFailEx(f"port {port.number}, {size} bytes, {fields}: {answer}")
        detach(port)


def _traffic(cfg, torture):
    """ Send frames of any size into both ports. """
    return [Traffic(cfg.request(300, torture.random.choice((60, 1000, 1514, 9014)), port.number,
                                flows=64, drain_ms=20, stall_ms=50, timeout_ms=2000), pauses=True)
            for port in cfg.ports]


def _round(cfg, torture, number):
    torture.start(number)
    try:
        traffic = _traffic(cfg, torture)
        try:
            for _ in range(CHANGES):
                torture.change()
        finally:
            for one in traffic:
                one.stop(0)
        _settled(cfg, torture)
        _check(cfg, torture)
    except Exception:
        ksft_pr(f"round {number}: " + "; ".join(torture.done))
        raise


@ksft_disruptive
def changes(cfg):
    """ Frames arrive after each round of changes as they should. """
    seed, first = (int(os.environ.get(name, default))
                   for name, default in (("SEED", DEFAULT_SEED), ("FIRST", 0)))
    seconds = float(os.environ.get("SECONDS", 0))
    count = int(os.environ.get("COUNT", rounds(cfg, 10, 3)))
    torture = Torture(cfg, seed)
    number, end, total = first, time.monotonic() + seconds, 0
    try:
        while time.monotonic() < end if seconds else number < first + count:
            _round(cfg, torture, number)
            total += len(torture.done)
            number += 1
    finally:
        torture.close()
    ksft_pr(f"SEED={seed}: {number - first} rounds, {total} changes, {torture.refused} refused")
    # The others would show nothing.
    ksft_ge(total, 2 * torture.refused, "changes that were made")


@ksft_disruptive
def no_page_is_missing(cfg):
    """ No page pool waits for its pages, and none is left of ports that are down. """
    indices = [port.ifindex() for port in cfg.ports]

    def gone():
        pages_back()
        return not [pool for pool in cfg.netnl.page_pool_get({}, dump=True)
                    if pool.get("ifindex") in indices]

    cfg.both("down")
    wait_until(gone, 30, "all page pools have gone")
    cfg.set_up()


def main():
    """ Ksft boiler plate main """

    run(__file__, [changes, forwards_after("changes"), no_page_is_missing, forwards_after("all")])


if __name__ == "__main__":
    main()
