#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
NAPI instances as netlink shows them: those of the queues, their interrupts, and
settings of each that last. Threads, timers and sockets that poll.
"""

import fcntl
import os
import re
import select
import socket
import struct
import time
from pathlib import Path

from lib.py import EthtoolFamily, KsftFailEx, KsftNamedVariant, KsftSkipEx, NetdevFamily
from lib.py import NetNSEnter, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_not_in
from lib.py import ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import is_emulated, skip_program, wait_until
from flow_rules import channels, set_channels

QUEUES = 2
# The key of the hash is random, so flows differ in many bits.
SERVER, CLIENTS = 7401, range(7410, 20_000, 331)
# Of each instance, another one: nanoseconds, polls, nanoseconds.
SETTINGS = ({"gro-flush-timeout": 30_000, "defer-hard-irqs": 3, "irq-suspend-timeout": 0},
            {"gro-flush-timeout": 50_000, "defer-hard-irqs": 5,
             "irq-suspend-timeout": 20_000_000})
NONE = {"gro-flush-timeout": 0, "defer-hard-irqs": 0, "irq-suspend-timeout": 0}
# While a socket is polled, interrupts stay off from one of its polls to the next.
POLLED = {"gro-flush-timeout": 200_000_000, "defer-hard-irqs": 100}
# The same, but for no more than 40 ms after the last packet.
BRIEFLY = {"gro-flush-timeout": 20_000_000, "defer-hard-irqs": 2}
SUSPENDED = {**POLLED, "irq-suspend-timeout": 500_000_000}
# A timer polls each 2 ms, for half a second after the last packet.
DEFERRED = {"gro-flush-timeout": 2_000_000, "defer-hard-irqs": 250}
TURNS = 100
# From include/uapi: asm-generic/socket.h and linux/eventpoll.h.
SO_BUSY_POLL, SO_INCOMING_NAPI_ID, SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET = 46, 56, 69, 70
EPIOCSPARAMS = 0x40088A01
# Longer than an answer takes.
BUSY_POLL_US, BUDGET = 20_000, 16


def _instances(cfg):
    """ Return the NAPI instance of each receive queue, in their order. """
    found = {one["id"]: one for one in cfg.netnl.napi_get({"ifindex": cfg.ifindex}, dump=True)}
    return [found[number] for number in _ids(cfg, "rx")]


def _ids(cfg, kind):
    """ Return the numbers of the instances of all queues of a kind. """
    queues = cfg.netnl.queue_get({"ifindex": cfg.ifindex}, dump=True)
    own = sorted((one["id"], one.get("napi-id")) for one in queues if one["type"] == kind)
    return [number for _, number in own]


def _set_thread(cfg, instance, state):
    cfg.netnl.napi_set({"id": instance["id"], "threaded": state})


def _settings(cfg):
    """ Return the settings of each instance. """
    return [{name: one[name] for name in NONE} for one in _instances(cfg)]


def _set_all(cfg, settings):
    for instance, those in zip(_instances(cfg), settings, strict=True):
        cfg.netnl.napi_set({"id": instance["id"], **NONE, **those})


@ksft_disruptive
def set_up(cfg):
    """ There are two queues. """
    cfg.count = channels(cfg)["combined-count"]
    set_channels(cfg, QUEUES)


@ksft_variants([KsftNamedVariant("rx", "rx"), KsftNamedVariant("tx", "tx")])
def of_each_queue(cfg, kind):
    """ Each queue has an instance of its own, and there are no others. """
    own = _ids(cfg, kind)
    ksft_eq(len(own), QUEUES)
    ksft_eq(sorted(own), sorted(one["id"] for one in cfg.netnl.napi_get(
        {"ifindex": cfg.ifindex}, dump=True)))


def interrupts(cfg):
    """ Each instance shows the interrupt that is named after its queue. """
    table = Path("/proc/interrupts").read_text(encoding="utf-8")
    for queue, instance in enumerate(_instances(cfg)):
        ksft_in("irq", instance)
        line = re.search(rf"^ *{instance.get('irq')}:.*$", table, re.M)
        ksft_in(f"{cfg.ifname}-TxRx-{queue}", line[0].split() if line else [])


def _down_and_up(cfg):
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")


def _mtu(cfg):
    for mtu in (4000, 1500):
        ip(f"link set {cfg.ifname} mtu {mtu}")


def _rings(cfg):
    header = {"header": {"dev-index": cfg.ifindex}}
    before = cfg.ethnl.rings_get(header)
    ethtool(f"-G {cfg.ifname} rx 1024 tx 1024")
    ethtool(f"-G {cfg.ifname} rx {before['rx']} tx {before['tx']}")


def _one_queue(cfg):
    """ The settings of a queue that there is not for a while are kept, too. """
    set_channels(cfg, 1)
    ksft_eq(_settings(cfg), [SETTINGS[0]])
    set_channels(cfg, QUEUES)


@ksft_variants([KsftNamedVariant(func.__name__.strip("_"), func)
                for func in (_down_and_up, _mtu, _rings, _one_queue)])
@ksft_disruptive
def settings_last(cfg, change):
    """ Each instance keeps its own settings while the port is changed. """
    defer(_set_all, cfg, [{}] * QUEUES)
    _set_all(cfg, SETTINGS)
    ksft_eq(_settings(cfg), list(SETTINGS))
    change(cfg)
    cfg.reach()
    ksft_eq(_settings(cfg), list(SETTINGS))


class Talk:
    """ Datagrams to the remote end and back, with both sockets here. """

    def __init__(self, cfg, port):
        with NetNSEnter(cfg.remote_ns):
            self.far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.far.bind((cfg.remote_addr_v["4"], SERVER))
        self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.near.bind((cfg.addr_v["4"], port))
        self.near.connect((cfg.remote_addr_v["4"], SERVER))
        self.far.connect((cfg.addr_v["4"], port))
        # Not settimeout(), with which recv() does not wait, and so does not poll.
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 5, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """ Close both sockets. """
        self.near.close()
        self.far.close()

    def turns(self, count, wait=lambda: None):
        """ Send datagrams to the near end, one at a time; it is ready after @wait. """
        for number in range(count):
            self.far.send(struct.pack("=I", number))
            wait()
            ksft_eq(self.near.recv(100), struct.pack("=I", number))

    def instance(self):
        """ Return the number of the instance that received the last one. """
        return self.near.getsockopt(socket.SOL_SOCKET, SO_INCOMING_NAPI_ID)


def _talk_by(cfg, queue):
    """ Return sockets of which the near one receives by this queue. """
    wanted = _instances(cfg)[queue]["id"]
    ethtool(f"-N {cfg.ifname} rx-flow-hash udp4 sdfn")
    defer(ethtool, f"-N {cfg.ifname} rx-flow-hash udp4 sd")
    for port in CLIENTS:
        talk = Talk(cfg, port)
        talk.turns(1)
        if talk.instance() == wanted:
            return talk
        talk.close()
    raise KsftFailEx(f"none of {len(CLIENTS)} flows is received by queue {queue}")


BOTH_QUEUES = [KsftNamedVariant(f"queue{queue}", queue) for queue in range(QUEUES)]


@ksft_variants(BOTH_QUEUES)
def thread_of_one(cfg, queue):
    """ One instance is polled by a thread, and the other is not. """
    instance = _instances(cfg)[queue]
    with _talk_by(cfg, queue) as talk:
        _set_thread(cfg, instance, "enabled")
        defer(_set_thread, cfg, instance, "disabled")
        found = _instances(cfg)
        ksft_in("pid", found[queue])
        ksft_not_in("pid", found[1 - queue])
        status = Path(f"/proc/{found[queue].get('pid')}")
        ksft_eq((status / "comm").read_text(encoding="utf-8").strip(),
                f"napi/{cfg.ifname}-{instance['id']}"[:15])
        before = _switches(status)
        talk.turns(50)
        ksft_ge(_switches(status), before + 1, "the thread has run")


def _switches(status):
    """ Return how many times a thread has given up the CPU. """
    text = (status / "status").read_text(encoding="utf-8")
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)[1])


def _raised(cfg, queue):
    """ Return the number of interrupts of a queue. """
    table = Path("/proc/interrupts").read_text(encoding="utf-8")
    line = re.search(rf"^ *\d+:.* {cfg.ifname}-TxRx-{queue}$", table, re.M)
    return sum(int(word) for word in line[0].split()[1:] if word.isdigit())


def _raised_by(cfg, queue, turns):
    """ Return the number of interrupts of a queue while it receives datagrams. """
    before = _raised(cfg, queue)
    turns(TURNS)
    return _raised(cfg, queue) - before


def _need_native():
    if is_emulated():
        raise KsftSkipEx("a poll takes longer than timers where the machine is emulated")


def _check_raised(cfg, queue, usual, turns):
    """ Check that datagrams are found with few interrupts. """
    ksft_ge(usual, 10 * _raised_by(cfg, queue, turns), "interrupts without, and with polls")


def _check_polled(cfg, queue, usual, turns):
    """ Check that datagrams are found with few interrupts, and not by the timer. """
    start = time.monotonic()
    _check_raised(cfg, queue, usual, turns)
    ksft_ge(TURNS * POLLED["gro-flush-timeout"] / 4, 1e9 * (time.monotonic() - start),
            "nanoseconds")


@ksft_variants(BOTH_QUEUES)
def polled_by_the_timer(cfg, queue):
    """ While interrupts are deferred, datagrams are found by a timer. """
    _need_native()
    with _talk_by(cfg, queue) as talk:
        usual = _raised_by(cfg, queue, talk.turns)
        defer(_set_all, cfg, [{}] * QUEUES)
        _set_all(cfg, [DEFERRED] * QUEUES)
        # The first ones may still be raised.
        talk.turns(10)
        _check_raised(cfg, queue, usual, talk.turns)


@ksft_variants(BOTH_QUEUES)
def polled_by_a_socket(cfg, queue):
    """ A socket that polls finds its datagrams without interrupts. """
    _need_native()
    with _talk_by(cfg, queue) as talk:
        usual = _raised_by(cfg, queue, talk.turns)
        defer(_set_all, cfg, [{}] * QUEUES)
        _set_all(cfg, [POLLED] * QUEUES)
        for name, value in ((SO_PREFER_BUSY_POLL, 1), (SO_BUSY_POLL, BUSY_POLL_US),
                            (SO_BUSY_POLL_BUDGET, BUDGET)):
            talk.near.setsockopt(socket.SOL_SOCKET, name, value)
        # The first ones may still be raised.
        talk.turns(10)
        _check_polled(cfg, queue, usual, talk.turns)


@ksft_variants(BOTH_QUEUES)
def suspended_by_epoll(cfg, queue):
    """ While epoll finds datagrams by polling, interrupts are suspended. """
    _need_native()
    with _talk_by(cfg, queue) as talk, select.epoll() as events:
        usual = _raised_by(cfg, queue, talk.turns)
        defer(_set_all, cfg, [{}] * QUEUES)
        _set_all(cfg, [SUSPENDED] * QUEUES)
        events.register(talk.near, select.EPOLLIN)
        fcntl.ioctl(events, EPIOCSPARAMS, struct.pack("=IHBx", BUSY_POLL_US, BUDGET, 1))

        def wait():
            events.poll(1)

        talk.turns(10, wait)
        _check_polled(cfg, queue, usual, lambda count: talk.turns(count, wait))


@ksft_variants(BOTH_QUEUES)
def interrupts_come_back(cfg, queue):
    """ After polls of a socket that waits no longer, interrupts are on again. """
    with _talk_by(cfg, queue) as talk:
        defer(_set_all, cfg, [{}] * QUEUES)
        _set_all(cfg, [BRIEFLY] * QUEUES)
        talk.near.setsockopt(socket.SOL_SOCKET, SO_PREFER_BUSY_POLL, 1)
        talk.near.setsockopt(socket.SOL_SOCKET, SO_BUSY_POLL, BUSY_POLL_US)
        talk.turns(10)
        talk.near.setsockopt(socket.SOL_SOCKET, SO_BUSY_POLL, 0)
        before = _raised(cfg, queue)

        def raises_one():
            talk.turns(1)
            return _raised(cfg, queue) > before

        # Seldom enough that the timers of the last packet have ended before the next one.
        wait_until(raises_one, 20, "an interrupt is raised", sleep=0.1)


@ksft_disruptive
def set_back(cfg):
    """ The number of queues is as it was, and so are all settings. """
    ksft_eq(_settings(cfg), [NONE] * QUEUES)
    set_channels(cfg, cfg.count)
    ksft_eq(channels(cfg)["combined-count"], cfg.count)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.ethnl, cfg.netnl, cfg.count = EthtoolFamily(), NetdevFamily(), QUEUES
        why = None
        if os.cpu_count() < QUEUES:
            why = "needs two CPUs"
        elif channels(cfg).get("combined-max", 0) < QUEUES:
            why = "needs two queues"
        elif None in _ids(cfg, "rx"):
            why = "the driver tells no instances of its queues"
        if why:
            skip_program(why)
        ksft_run(cfg.judged([set_up, of_each_queue, interrupts, settings_last, thread_of_one,
                             polled_by_the_timer, polled_by_a_socket, suspended_by_epoll,
                             interrupts_come_back, set_back]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
