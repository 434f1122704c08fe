#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Deferred doorbells: no packet waits for a packet that may not follow, and none
is lost uncounted when the interface goes down.
"""

import glob
from pathlib import Path

from lib.py import KsftSkipEx, ip, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_ge, ksft_gt, ksft_lt, ksft_run
from lib.py.nicmodel import judged
from lib.py.nicmodel import INFLIGHT, NicModelEnv, forwards_after
from lib.py.support import Task, driver_stats, flood, provokes, wait_until

# Frames one by one: more than the drivers receive before they fill the ring up again.
SINGLE = 100
DOWNS = 10
LEAST = "byte_queue_limits/limit_min"


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()
    cfg.settle()


def _doorbells(cfg):
    return driver_stats(cfg.ports[1].ifname)["tx_doorbells"]


def single_frames(cfg):
    """
    Single frames leave at once: the next one is sent when the last one has come out. One that
    waited for its doorbell would wait for the check-up of the driver, each second.
    """
    before = _doorbells(cfg)
    answer = cfg.check_forwarded(SINGLE, window=1)
    ksft_lt(answer["seconds"], 10, answer)
    cfg.single = _doorbells(cfg) - before


def single_frames_doorbells(cfg):
    """ Each single frame had a doorbell of its own. """
    ksft_ge(cfg.single, SINGLE)


def burst(cfg):
    """ A burst is forwarded completely. """
    before = _doorbells(cfg)
    cfg.check_forwarded(2000)
    cfg.shared = _doorbells(cfg) - before


def burst_doorbells(cfg):
    """ The frames of a burst share doorbells. """
    ksft_lt(cfg.shared, 2000)


def _on_wire(cfg, name):
    """ Return a counter of the card for the wire of the second port. """
    return cfg.model.stats(1)[name]


def single_frame_of_a_program(cfg):
    """ A single frame sent outside of a NAPI poll leaves at once. """
    before = _on_wire(cfg, "tx_frames")
    ksft_eq(flood(cfg.ports[1].ifname, 1, 5), 1)
    wait_until(lambda: _on_wire(cfg, "tx_frames") > before, 3, "it leaves")


@ksft_disruptive
def least_limit(cfg):
    """
    Byte queue limits let the card have the packets of a doorbell at least. Another
    number, set by users, outlasts an interface that goes down and up.
    """
    queues = f"/sys/class/net/{cfg.ports[1].ifname}/queues"
    limits = [Path(name) for name in glob.glob(f"{queues}/tx-*/{LEAST}")]
    if not limits:
        raise KsftSkipEx("no byte queue limits")
    cfg.require_driver("ixgbe_rust", "the driver leaves the least limit at 0")
    ksft_eq({path.read_text() for path in limits}, {"48448\n"})
    limits[0].write_text("3000")
    try:
        ip(f"link set {cfg.ports[1].ifname} down")
        cfg.set_up()
        ksft_eq(limits[0].read_text(), "3000\n")
        cfg.check_works()
    finally:
        limits[0].write_text("48448")


@ksft_disruptive
def stopped_queue(cfg):
    """
    All bytes of a stopped queue are on the wire. The card transmits without
    reporting it, until the byte limit or a full ring stops the queue: no
    further packet rings the doorbell for those in the ring.
    """
    port = cfg.ports[1]
    if not glob.glob(f"/sys/class/net/{port.ifname}/queues/tx-0/{INFLIGHT}"):
        raise KsftSkipEx("no byte queue limits")
    provokes("netdev")
    before = _on_wire(cfg, "tx_bytes")
    cfg.model.fault(1, "tx_no_done", 100000)
    cfg.generate(700, 100, drain_ms=300, timeout_ms=2500)
    # A while before the watchdog restarts the port.
    wait_until(lambda: 0 < port.tx_queue_sum(INFLIGHT) == _on_wire(cfg, "tx_bytes") - before, 3,
               "all bytes that the ring holds have left")
    ksft_lt(port.tx_queue_sum(INFLIGHT), 70000, "bytes in flight: the queue was not stopped")


@ksft_disruptive
def stopped_queue_goes_on(cfg):
    """ The port can be set down and up after that. """
    cfg.model.mend(1)
    ip(f"link set {cfg.ports[1].ifname} down")
    cfg.set_up()


def _account(cfg):
    stats = driver_stats(cfg.ports[1].ifname)
    found = {name: stats[f"tx_{name}"] for name in ("packets", "lost", "refused")}
    return found | {"wire": _on_wire(cfg, "tx_frames")}


@ksft_disruptive
def down_while_sending(cfg):
    """ The interface goes down while a program sends. """
    port = cfg.ports[1]
    cfg.settle()
    before = _account(cfg)
    taken = 0
    for _ in range(DOWNS):
        sent = port.stat("tx_packets")
        sender = Task(flood, port.ifname, 1_000_000, 60)
        try:
            # More than the ring holds, which has been full by then.
            wait_until(lambda sent=sent: port.stat("tx_packets") > sent + 2000,
                       60, "the program sends")
            ip(f"link set {port.ifname} down")
            taken += sender.result()
        finally:
            sender.kill()
        cfg.set_up()
    cfg.settle()
    after = _account(cfg)
    cfg.account = {name: after[name] - before[name] for name in before}
    cfg.account["taken"] = taken


def each_is_counted(cfg):
    """
    Each packet that the driver took is counted as sent, lost or refused. The
    stack sends a few packets of its own when an interface goes up.
    """
    account = cfg.account
    known = account["packets"] + account["lost"] + account["refused"]
    ksft_gt(account["taken"], 0)
    ksft_ge(known, account["taken"], account)
    ksft_ge(account["taken"] + 200, known, account)


def what_counts_as_sent_was_on_the_wire(cfg):
    """
    Packets counted as sent were on the wire. One in transmission when the card
    stopped may be on the wire and counted as lost.
    """
    account = cfg.account
    ksft_ge(account["wire"], account["packets"], account)
    ksft_ge(account["packets"] + account["lost"], account["wire"], account)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver lets no doorbell wait") as cfg:
        cfg.single = cfg.shared = 0
        cfg.account = {}
        ksft_run(judged([set_up, single_frames, single_frames_doorbells, burst,
                         burst_doorbells, single_frame_of_a_program,
                         least_limit, stopped_queue, stopped_queue_goes_on,
                         forwards_after("stopped_queue"),
                         down_while_sending, each_is_counted,
                         what_counts_as_sent_was_on_the_wire,
                         forwards_after("down_while_sending")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
