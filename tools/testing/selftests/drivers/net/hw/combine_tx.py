#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
CPUs that combine on the transmit queue (combine_tx of ixgbe_rust): packets
sent by several programs at the same time leave once, in order, and share
doorbells.
"""

import re

from lib.py import CmdExitFailure, EthtoolFamily, KsftFailEx, ethtool
from lib.py import ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_gt
from lib.py import ksft_in, ksft_lt, ksft_pr, ksft_raises, ksft_run, ksft_true
from lib.py.datagrams import Flow, Plan
from lib.py.nicmodel import judged
from lib.py.nicmodel import CABLE_V4, Cable, NicModelEnv, forwards_after
from lib.py.support import Task, driver_stats, flood, kernel_log, wait_until

SENDERS, COUNT = 6, 2000
ATTEMPTS = 20
DOWNS = 10
FLOODERS = 3
ACCOUNTED = ("tx_packets", "tx_lost", "tx_refused", "tx_combine_dropped")


def _flag(cfg):
    said = ethtool(f"--show-priv-flags {cfg.ports[0].ifname}").stdout
    return re.search(r"^combine-tx\s*: (\w+)$", said, re.M)[1]


def _set_flag(cfg, state):
    ethtool(f"--set-priv-flags {cfg.ports[0].ifname} combine-tx {state}")


def flag_is_off(cfg):
    """ The flag is off without the module parameter. """
    ksft_eq(_flag(cfg), "off")


def flag_refused(cfg):
    """ The flag cannot be set, and the kernel log has the reason. """
    said = len(kernel_log())
    with ksft_raises(CmdExitFailure) as refused:
        _set_flag(cfg, "on")
    ksft_in("not supported", refused.exception.cmd.stderr.lower())
    ksft_true(re.search(r"combine-tx needs .* combine_tx=1", kernel_log()[said:]))


def flag_is_still_off(cfg):
    """ The refused change has no effect. """
    ksft_eq(_flag(cfg), "off")


@ksft_disruptive
def load(cfg):
    """ The driver loads with combine_tx=1. """
    cfg.card.unload()
    cfg.reloaded = True
    cfg.card.load("combine_tx=1")


def one_queue(cfg):
    """ Both ports have one queue, which all CPUs share. """
    def count(port):
        asked = {"header": {"dev-index": port.ifindex()}}
        return cfg.ethnl.channels_get(asked)["combined-count"]

    for port in cfg.ports:
        if count(port) > 1:
            ethtool(f"-L {port.ifname} combined 1")
        ksft_eq(count(port), 1)


def flag_is_on(cfg):
    """ The flag is on with the module parameter. """
    ksft_eq(_flag(cfg), "on")


def cable(cfg):
    """ The ports reach each other over the cable. """
    cfg.cable = Cable(cfg.card, v6=False)


def _stats(cfg):
    return driver_stats(cfg.ports[0].ifname)


def _plan(cfg, way):
    """
    Return a plan: fewer datagrams under way than the receiver has descriptors.
    """
    plan = Plan(CABLE_V4[1], target=cfg.cable.ns.name, senders=SENDERS, count=COUNT,
                ahead=48, patience=60)
    if way == "packet":
        plan.packet = True
        plan.where, plan.whence = (port.ifname for port in cfg.ports)
    return plan


def _all_there(cfg, name, way, meanwhile=None):
    """ Send everything, and keep the result for later cases. """
    before = _stats(cfg)
    flow = Flow(_plan(cfg, way))
    try:
        if meanwhile:
            meanwhile()
        result = flow.finish()
    finally:
        flow.stop()
    after = _stats(cfg)
    cfg.results[name] = result, {key: after[key] - before.get(key, 0) for key in after}
    ksft_eq(result.taken, SENDERS * COUNT)


def _arrived(name):
    """
    Return a case: each datagram of the case before arrived once, in order.
    """
    def case(cfg):
        if name not in cfg.results:
            raise KsftFailEx("not all was sent")
        result, counted = cfg.results[name]
        result.check_all()
        if result.received != result.taken:
            ksft_pr({key: value for key, value in counted.items() if value})
    case.__name__ = f"{name}_arrive_in_order"
    return case


def senders_past_qdisc(cfg):
    """ All datagrams are sent by packet sockets, without the qdisc. """
    _all_there(cfg, "senders_past_qdisc", "packet")


def senders_share_doorbells(cfg):
    """
    CPUs sent packets of others, with fewer doorbells than packets. If the CPUs
    are virtual, and had to take turns all the time, the programs send again.
    """
    for _ in range(ATTEMPTS):
        _, counted = cfg.results["senders_past_qdisc"]
        if counted["tx_combined"]:
            break
        _all_there(cfg, "senders_past_qdisc", "packet")
    ksft_pr(f"{counted['tx_packets']} packets, {counted['tx_doorbells']} doorbells, "
            f"{counted['tx_combined']} sent by another CPU")
    ksft_lt(counted["tx_doorbells"], counted["tx_packets"])
    ksft_gt(counted["tx_combined"], 0)


def neighbours(cfg):
    """ The ports have permanent neighbour entries. """
    local, remote = (port.ifname for port in cfg.ports)
    ns = cfg.cable.ns.name
    macs = (cfg.ports[0].mac(),
            ip(f"link show dev {remote}", json=True, ns=ns)[0]["address"])
    ip(f"neigh replace {CABLE_V4[1]} lladdr {macs[1]} dev {local} nud permanent")
    ip(f"neigh replace {CABLE_V4[0]} lladdr {macs[0]} dev {remote} nud permanent", ns=ns)


def senders_through_qdisc(cfg):
    """ All datagrams are sent by UDP sockets, through the qdisc. """
    _all_there(cfg, "senders_through_qdisc", "udp")


@ksft_disruptive
def flag_toggled(cfg):
    """ All datagrams are sent while the flag changes 50 times. """
    def toggle():
        for _ in range(25):
            _set_flag(cfg, "off")
            _set_flag(cfg, "on")
    _all_there(cfg, "flag_toggled", "packet", toggle)


def flag_off(cfg):
    """ All datagrams are sent with the flag off. """
    _set_flag(cfg, "off")
    try:
        _all_there(cfg, "flag_off", "packet")
    finally:
        _set_flag(cfg, "on")


def flag_off_combines_nothing(cfg):
    """ Each CPU sends its own packets with the flag off. """
    ksft_eq(cfg.results["flag_off"][1]["tx_combined"], 0)


def _accounted(cfg):
    """
    Sum up the packets that the driver has accounted for. Packets that the
    stack drops while the port goes down are reported to the sender instead.
    """
    stats = _stats(cfg)
    return sum(stats.get(name, 0) for name in ACCOUNTED)


@ksft_disruptive
def down_while_sending(cfg):
    """ The interface goes down while several programs send. """
    port = cfg.ports[0]
    before = _accounted(cfg)
    taken = 0
    for _ in range(DOWNS):
        sent = port.stat("tx_packets")
        senders = [Task(flood, port.ifname, 1_000_000, 60) for _ in range(FLOODERS)]
        try:
            wait_until(lambda sent=sent: port.stat("tx_packets") > sent + 50, 20,
                       "the programs send")
            ip(f"link set {port.ifname} down")
            taken += sum(sender.result() for sender in senders)
        finally:
            for sender in senders:
                sender.kill()
        ip(f"link set {port.ifname} up")
        cfg.card.wait_up([port])
    cfg.account = taken, _accounted(cfg) - before


def each_is_counted(cfg):
    """
    Each packet that the driver took is counted as sent or dropped. The stack
    sends a few packets of its own when an interface goes up.
    """
    taken, known = cfg.account
    ksft_pr(f"{taken} taken, {known} sent or dropped")
    ksft_gt(taken, 0)
    ksft_ge(known, taken)
    ksft_ge(taken + 400, known)


def reach_after_down(cfg):
    """ The ports reach each other again. """
    wait_until(cfg.cable.reaches, 20, "the ports reach each other")


def senders_after_down(cfg):
    """ All datagrams are sent after the interface went down and up. """
    _all_there(cfg, "senders_after_down", "packet")


@ksft_disruptive
def transmitter_hangs(cfg):
    """
    The watchdog restarts a transmitter that stops reporting. Its queue is
    stopped until then, and packets are held.
    """
    cfg.hang_transmitter()


def cable_off(cfg):
    """ Both ports are back in this namespace. """
    cfg.cable.close()
    cfg.cable = None
    ksft_eq([port.find() for port in cfg.ports], [True, True])


def main():
    """ Ksft boiler plate main """

    # Emulated CPUs take long turns, and rarely run at the same time.
    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="CPUs of other drivers do not combine", native=True) as cfg:
        cfg.ethnl = EthtoolFamily()
        cfg.reloaded, cfg.cable, cfg.results, cfg.account = False, None, {}, (0, 0)
        try:
            ksft_run(judged([flag_is_off, flag_refused, flag_is_still_off,
                             load, one_queue, flag_is_on, cable,
                             senders_past_qdisc, _arrived("senders_past_qdisc"),
                             senders_share_doorbells, neighbours,
                             senders_through_qdisc, _arrived("senders_through_qdisc"),
                             flag_toggled, _arrived("flag_toggled"),
                             flag_off, _arrived("flag_off"), flag_off_combines_nothing,
                             down_while_sending, each_is_counted, reach_after_down,
                             senders_after_down, _arrived("senders_after_down"),
                             cable_off, forwards_after("cable"),
                             transmitter_hangs, forwards_after("hang", 2000)]),
                     args=(cfg, ))
        finally:
            if cfg.cable:
                cfg.cable.close()
            # Other tests expect the driver with its default parameters.
            if cfg.reloaded:
                cfg.card.unload()
                cfg.card.load()
    ksft_exit()


if __name__ == "__main__":
    main()
