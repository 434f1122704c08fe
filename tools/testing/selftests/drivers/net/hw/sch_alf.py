#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The queueing discipline alf in front of a device: each datagram that it takes
arrives once and in the order of its sender, and each drop is counted.
"""

import glob
import time
from pathlib import Path

from lib.py import CmdExitFailure, KsftFailEx, KsftNamedVariant, KsftSkipEx, cmd, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_gt
from lib.py import ksft_raises, ksft_run, ksft_true, ksft_variants
from lib.py import qdisc
from lib.py.datagrams import Flow, Plan
from lib.py.peer import PeerEnv
from lib.py.support import insert_module, netdev_stat, remove_module, skip_program
from lib.py.support import wait_until

SENDERS = 4
EACH = 5000
LONG = 1_000_000_000
_MODPROBE = Path("/proc/sys/kernel/modprobe")
WRONG = {
    "limit_0": (bytes(4), "limit 0: no packet could wait"),
    "limit_too_large": (qdisc.limit((1 << 20) + 1),
                        "limit 1048577: must be at most 1048576"),
    "short": (bytes((4, 0)), "options have 2 bytes, and must have 4"),
    "long": (qdisc.limit(4) + bytes(4), "options have 8 bytes, and must have 4"),
}


def neighbours(cfg):
    """ The ports have permanent neighbour entries. """
    cfg.know_each_other()


def reach_without(cfg):
    """ The ports reach each other without alf. """
    ksft_true(cfg.reaches())


def load(_cfg):
    """ The module can be loaded. """
    insert_module("sch_alf")


def _alf(cfg):
    cfg.root.replace("alf")
    ksft_eq(cfg.root.kind(), "alf")


def put_on(cfg):
    """ tc can set alf as the root qdisc. """
    _alf(cfg)


def default_limit(cfg):
    """ The default limit is txqueuelen, rounded up to a power of two. """
    ksft_eq(qdisc.fifo_limit(cfg.ifname), 1024)


def reach(cfg):
    """ The ports reach each other through alf. """
    ksft_true(cfg.reaches())


def _check_refused(cfg, name):
    options, message = WRONG[name]
    with ksft_raises(qdisc.RefusedOptions) as refused:
        qdisc.replace_raw(cfg.ifname, "alf", options)
    ksft_eq(str(refused.exception), f"Invalid argument: {message}")


@ksft_variants(list(WRONG))
def change_refused(cfg, name):
    """ A change with wrong options is refused with a message. """
    _check_refused(cfg, name)


def change_refused_changes_nothing(cfg):
    """ The refused change has no effect on the limit. """
    ksft_eq(qdisc.fifo_limit(cfg.ifname), 1024)


def another_takes_its_place(cfg):
    """ Another qdisc can replace it. """
    cfg.root.replace("pfifo limit 1000")
    ksft_eq(cfg.root.kind(), "pfifo")


@ksft_variants(list(WRONG))
def make_refused(cfg, name):
    """ Creation with wrong options is refused with a message. """
    _check_refused(cfg, name)


def make_refused_makes_none(cfg):
    """ The other qdisc is still in place. """
    ksft_eq(cfg.root.kind(), "pfifo")


@ksft_variants([KsftNamedVariant("is_rounded_up", 100, 128),
                KsftNamedVariant("largest", 1 << 20, 1 << 20)])
def limit(cfg, asked, expected):
    """ The limit is shown as it was set, rounded up to a power of two. """
    _set_limit(cfg, asked)
    ksft_eq(qdisc.fifo_limit(cfg.ifname), expected)


def _set_limit(cfg, packets):
    qdisc.replace_raw(cfg.ifname, "alf", qdisc.limit(packets))


def _set_limit_soon(cfg, packets):
    """ Set it under load: packets from before other changes must be out. """
    def is_set():
        try:
            _set_limit(cfg, packets)
        except qdisc.RefusedOptions as refused:
            if "busy" not in str(refused):
                raise
            return False
        return True
    wait_until(is_set, 60, "the limit changes", sleep=0.01)


def _missed(cfg):
    """
    Return the number of packets sent by one port and not received by the
    other, or dropped at a full socket.
    """
    said = cmd("cat /proc/net/snmp", host=cfg.remote).stdout
    udp = [line.split() for line in said.splitlines() if line.startswith("Udp:")]
    errors = int(udp[1][udp[0].index("InErrors")])
    return netdev_stat(cfg.ifname, "tx_packets") - cfg.remote_stat("rx_packets") + errors


def _flow(cfg, count=0):
    """ Start senders, which end after so many datagrams each, or when they are told. """
    return Flow(Plan(cfg.remote_addr_v["4"], target=cfg.remote.name, senders=SENDERS,
                     count=count, seconds=1000, ahead=LONG, told=True))


class Load:
    """ Running senders, and the counters from before their start. """

    def __init__(self, cfg, count=0):
        self.cfg = cfg
        self.before = self._counters()
        self.flow = _flow(cfg, count)
        self.result = None

    def _counters(self):
        return {"dropped": self.cfg.root.counted("dropped"),
                "of_device": netdev_stat(self.cfg.ifname, "tx_dropped"),
                "missed": _missed(self.cfg)}

    def finish(self):
        """ Wait for the senders and keep the result. """
        self.result = self.flow.finish()
        self.after = self._counters()

    def grown(self, name):
        """ Return the growth of a counter. """
        return self.after[name] - self.before[name]

    def check_order(self):
        """ Check that no datagram arrived twice or out of order. """
        if not self.result:
            raise KsftFailEx("the senders did not end well")
        self.result.check_order()

    def check_accounted(self, lost):
        """
        Check that each datagram taken has arrived, was dropped, or was missed
        by the remote end.
        """
        if not self.result:
            raise KsftFailEx("the senders did not end well")
        ksft_gt(self.result.received, 0)

        def accounted():
            missed = _missed(self.cfg) - self.before["missed"]
            return self.result.received + lost + missed

        end = time.monotonic() + 60
        while accounted() != self.result.taken and time.monotonic() < end:
            time.sleep(0.1)
        ksft_eq(accounted(), self.result.taken,
                f"{self.result.received} received, {lost} dropped, the others missed")


def _packets_leave(cfg, count=20):
    """ Wait until the senders have made the device send some packets. """
    before = netdev_stat(cfg.ifname, "tx_packets")
    wait_until(lambda: netdev_stat(cfg.ifname, "tx_packets") - before >= count, 60,
               "packets leave", 0.005)


def _under_load(cfg, name, change, count=0):
    """
    Make a change while datagrams are sent, until it is made unless there is a
    count, and keep the result for later cases.
    """
    load_ = cfg.loads[name] = Load(cfg, count)
    try:
        if not count:
            _packets_leave(cfg)
        change()
        if not count:
            _packets_leave(cfg)
            load_.flow.end()
        load_.finish()
    finally:
        load_.flow.stop()


def room_for_all(cfg):
    """ The limit can be raised for all datagrams. """
    _set_limit(cfg, 65536)
    ksft_eq(qdisc.fifo_limit(cfg.ifname), 65536)


def in_order(cfg):
    """ Each datagram is taken. """
    cfg.sent = cfg.root.counted("sent")
    _under_load(cfg, "order", lambda: None, EACH)
    ksft_eq(cfg.loads["order"].result.taken, SENDERS * EACH)


def in_order_all_arrive(cfg):
    """ Each datagram arrives. """
    cfg.loads["order"].check_accounted(0)


def in_order_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["order"].check_order()


def in_order_none_dropped(cfg):
    """ No packet is counted as dropped. """
    ksft_eq(cfg.loads["order"].grown("dropped"), 0)


def in_order_counted_as_sent(cfg):
    """ All packets are counted as sent. """
    ksft_ge(cfg.root.counted("sent") - cfg.sent, SENDERS * EACH)


def in_order_no_backlog(cfg):
    """ The backlog is empty, in packets and bytes. """
    ksft_eq((cfg.root.counted("backlog"), cfg.root.counted("backlog_bytes")), (0, 0))


def hardly_any_room(cfg):
    """ The limit can be lowered to four packets. """
    _set_limit(cfg, 4)
    ksft_eq(qdisc.fifo_limit(cfg.ifname), 4)


def _set_bql(cfg, value):
    """ Set the byte limit of each queue and return the resulting values. """
    pattern = f"/sys/class/net/{cfg.ifname}/queues/tx-*/byte_queue_limits/limit_max"
    shown = []
    for path in glob.glob(pattern):
        Path(path).write_text(value, encoding="utf-8")
        shown.append(int(Path(path).read_text(encoding="utf-8")))
    return shown


def device_gets_few(cfg):
    """ The byte queue limits can be lowered. """
    shown = _set_bql(cfg, "200")
    ksft_eq(shown, [200] * len(shown))


def device_gets_many(cfg):
    """ The byte queue limits can be raised again. """
    shown = _set_bql(cfg, "max")
    ksft_ge(min(shown), 1 << 20)


def full(cfg):
    """ A full qdisc drops packets. """
    _under_load(cfg, "full", lambda: None, EACH)
    ksft_gt(cfg.loads["full"].grown("dropped"), 0)


def full_taken_arrive(cfg):
    """ Each datagram that was taken arrives. """
    load_ = cfg.loads["full"]
    load_.check_accounted(load_.grown("dropped") - load_.result.refused)


def full_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["full"].check_order()


def full_others_counted(cfg):
    """ Dropped datagrams are those that were refused. """
    load_ = cfg.loads["full"]
    ksft_eq(load_.grown("dropped"), load_.result.refused)


@ksft_disruptive
def limits_change(cfg):
    """ The limit changes 40 times under load. """
    def change():
        for _ in range(20):
            _set_limit_soon(cfg, 2)
            _set_limit_soon(cfg, 4000)
    _under_load(cfg, "limits", change)


def limits_change_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["limits"].check_order()


def limits_change_lost_are_counted(cfg):
    """ Lost datagrams are counted as dropped by the full qdisc. """
    load_ = cfg.loads["limits"]
    load_.check_accounted(load_.grown("dropped") - load_.result.refused)


def limits_change_device_goes_on(cfg):
    """ The device does not drop packets meanwhile. """
    ksft_eq(cfg.loads["limits"].grown("of_device"), 0)


def limit_stays(cfg):
    """ The same limit is set 40 times under load. """
    _set_limit(cfg, 65536)
    _under_load(cfg, "same",
                lambda: [_set_limit(cfg, 65536) for _ in range(40)], EACH)


def limit_stays_nothing_lost(cfg):
    """ Each datagram is taken, and arrives in order. """
    load_ = cfg.loads["same"]
    ksft_eq(load_.result.taken, SENDERS * EACH)
    load_.check_accounted(0)
    load_.check_order()


def limit_grows(cfg):
    """ The limit changes 20 times under load, with room for all. """
    def change():
        for packets in 10 * (1 << 15, 1 << 16):
            _set_limit_soon(cfg, packets)
    _under_load(cfg, "grows", change, EACH)


def limit_grows_nothing_lost(cfg):
    """ Each datagram is taken, and arrives in order. """
    load_ = cfg.loads["grows"]
    ksft_eq(load_.result.taken, SENDERS * EACH)
    load_.check_accounted(0)
    load_.check_order()


@ksft_disruptive
def lengths_change(cfg):
    """ txqueuelen changes under load. """
    cfg.root.replace("pfifo")
    _alf(cfg)

    def change():
        for length in (10, 300, 1000, 5, 5000, 1000):
            ip(f"link set {cfg.ifname} txqueuelen {length}")
            _packets_leave(cfg)
    _under_load(cfg, "lengths", change)


def lengths_change_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["lengths"].check_order()


def limit_follows_device(cfg):
    """ A default limit follows txqueuelen. """
    ksft_eq(qdisc.fifo_limit(cfg.ifname), 1024)


def no_queue_refused(cfg):
    """ A txqueuelen of 0 is refused. """
    with ksft_raises(CmdExitFailure):
        ip(f"link set {cfg.ifname} txqueuelen 0")


@ksft_disruptive
def replaced(cfg):
    """ The qdisc is replaced 50 times under load. """
    def change():
        for _ in range(25):
            cfg.root.replace("pfifo")
            _alf(cfg)
    _under_load(cfg, "replaced", change)


def replaced_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["replaced"].check_order()


def replaced_arrive(cfg):
    """ Datagrams arrive meanwhile, no more than were taken. """
    result = cfg.loads["replaced"].result
    ksft_gt(result.received, 0)
    ksft_ge(result.taken, result.received)


def _address(cfg):
    """ Return the address of the port, with the length of its prefix. """
    info = ip(f"addr show dev {cfg.ifname} to {cfg.addr_v['4']}", json=True)[0]["addr_info"][0]
    return f"{info['local']}/{info['prefixlen']}"


@ksft_disruptive
def downs(cfg):
    """
    The interface goes down and up 5 times under load. Its neighbour entries
    are lost then; the address returns after them, so that no packet waits for
    ARP.
    """
    address = _address(cfg)

    def change():
        for _ in range(5):
            ip(f"link set {cfg.ifname} down")
            ip(f"addr del {address} dev {cfg.ifname}")
            ip(f"link set {cfg.ifname} up")
            cfg.wait_up()
            cfg.know_each_other()
            ip(f"addr add {address} dev {cfg.ifname}")
            _packets_leave(cfg)
    _under_load(cfg, "downs", change)


def downs_order(cfg):
    """ Datagrams arrive once and in order. """
    cfg.loads["downs"].check_order()


def downs_still_alf(cfg):
    """ The root qdisc is still alf. """
    ksft_eq(cfg.root.kind(), "alf")


def downs_reach(cfg):
    """ The ports reach each other again. """
    wait_until(cfg.reaches, 60, "the ports reach each other")


def used_module_stays(_cfg):
    """ The module cannot be unloaded while in use. """
    with ksft_raises(CmdExitFailure):
        remove_module("sch_alf")


@ksft_disruptive
def removed_under_load(cfg):
    """ The qdisc can be deleted under load. """
    load_ = Load(cfg)
    try:
        _packets_leave(cfg)
        cfg.root.remove()
        _packets_leave(cfg)
        load_.flow.end()
        load_.flow.finish()
    finally:
        load_.flow.stop()


def unused_module_goes(_cfg):
    """ The module can be unloaded afterwards. """
    remove_module("sch_alf")


def unknown_without_module(cfg):
    """ alf is unknown to tc when the kernel cannot load the module. """
    modprobe = _MODPROBE.read_text(encoding="utf-8")
    _MODPROBE.write_text("\n", encoding="utf-8")
    try:
        with ksft_raises(CmdExitFailure):
            cfg.root.replace("alf")
    finally:
        _MODPROBE.write_text(modprobe, encoding="utf-8")


def loaded_by_its_alias(cfg):
    """ The kernel loads the module by its alias. """
    if cmd("modprobe -n net-sch-alf", fail=False).ret:
        raise KsftSkipEx("modprobe does not know the module")
    cfg.root.replace("alf")
    cfg.root.remove()
    remove_module("sch_alf")


def loaded_again(_cfg):
    """ The module can be loaded again. """
    insert_module("sch_alf")


def put_on_again(cfg):
    """ tc can set alf as the root qdisc again. """
    _alf(cfg)


def reach_again(cfg):
    """ The ports reach each other through alf again. """
    ksft_true(cfg.reaches())


def module_goes_again(cfg):
    """ The module can be unloaded again. """
    cfg.root.remove()
    remove_module("sch_alf")


@ksft_disruptive
def reloaded_under_load(cfg):
    """ The module is loaded, used and unloaded 100 times under load. """
    cfg.flow = _flow(cfg)
    for _ in range(100):
        insert_module("sch_alf")
        _alf(cfg)
        _packets_leave(cfg)
        cfg.root.remove()
        remove_module("sch_alf")


def senders_are_still_there(cfg):
    """ No sender has failed. """
    ksft_true(cfg.flow.sending())
    cfg.flow.stop()


UNDER_LOAD = (
    room_for_all, in_order, in_order_all_arrive, in_order_order, in_order_none_dropped,
    in_order_counted_as_sent, in_order_no_backlog,
    hardly_any_room, device_gets_few, full, full_taken_arrive, full_order,
    full_others_counted, device_gets_many,
    limits_change, limits_change_order, limits_change_lost_are_counted,
    limits_change_device_goes_on,
    limit_stays, limit_stays_nothing_lost, limit_grows, limit_grows_nothing_lost,
    lengths_change, lengths_change_order, limit_follows_device, no_queue_refused,
    replaced, replaced_order, replaced_arrive,
    downs, downs_order, downs_still_alf, downs_reach,
)


def main():
    """ Ksft boiler plate main """

    cases = [neighbours, reach_without, load, put_on, default_limit, reach, change_refused,
             change_refused_changes_nothing, another_takes_its_place,
             make_refused, make_refused_makes_none, limit, *UNDER_LOAD]
    cases += [used_module_stays, removed_under_load, unused_module_goes,
              unknown_without_module, loaded_by_its_alias, loaded_again, put_on_again,
              reach_again, module_goes_again, reloaded_under_load, senders_are_still_there]

    try:
        insert_module("sch_alf")
        remove_module("sch_alf")
    except CmdExitFailure:
        skip_program("this kernel has no CONFIG_NET_SCH_ALF")
    with PeerEnv(__file__, native=True, v6=False) as cfg:
        cfg.root = qdisc.Root(cfg.ifname)
        cfg.loads, cfg.flow, cfg.sent = {}, None, 0
        try:
            ksft_run(cfg.judged(cases), args=(cfg, ))
        finally:
            if cfg.flow:
                cfg.flow.stop()
            cmd(f"tc qdisc del dev {cfg.ifname} root", fail=False)
            cmd("rmmod sch_alf", fail=False)
    ksft_exit()


if __name__ == "__main__":
    main()
