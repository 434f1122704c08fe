#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
ATR: packets of a TCP connection are received by the queue that sends for it,
and so on the CPU of its process, wherever their hash would put them.
"""

import contextlib
import os
import socket
import struct
import time
from operator import itemgetter

from lib.py import EthtoolFamily, KsftFailEx, KsftNamedVariant, KsftSkipEx, NetdevFamily
from lib.py import NetNSEnter, cmd, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import driver_stats, is_emulated, skip_program, wait_until
from flow_rules import channels, delete_all, insert, received, set_channels, switch

CPUS = (0, 1)
PORT, CLOSED = 7003, 7004
# A connection from one of these has the same hash whatever its CPU.
SOURCES = range(7300, 7306)
# The driver looks at each twentieth packet of a queue.
ROUNDS = 60
PIECE, PIECES = 8000, 20
# The least number of frames that have all of it, of up to 1448 bytes each.
FRAMES = PIECES * (PIECE // 1448)
VLAN = 5
VLAN_ADDRESSES = ("10.9.5.1", "10.9.5.2")
# More than there can be filters in 64 KiB of the card's memory.
MANY = range(20_000, 28_300)
# The drivers look after the table once in one second, or in two.
CHECK_UP = 4
LINGER = struct.pack("ii", 1, 0)


def _addresses(cfg, kind):
    """ Return the addresses of both ends. """
    if kind == "vlan":
        return VLAN_ADDRESSES
    cfg.require_ipver(kind)
    return cfg.addr_v[kind], cfg.remote_addr_v[kind]


def _add_vlan(cfg):
    """ Set up an interface of a VLAN at both ends. """
    ends = ((cfg.ifname, None), (cfg.remote_ifname, cfg.remote))
    for (dev, host), address in zip(ends, VLAN_ADDRESSES, strict=True):
        ip(f"link add link {dev} name ksft-vlan type vlan id {VLAN}", host=host)
        defer(ip, "link del ksft-vlan", host=host)
        ip(f"addr add {address}/24 dev ksft-vlan", host=host)
        ip("link set ksft-vlan up", host=host)
    cmd(f"ping -q -c 1 -W 2 {VLAN_ADDRESSES[1]}")


@contextlib.contextmanager
def _on(cpu):
    """ Run on a CPU, and so send by the queue of this number. """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _send(one, other, count):
    """ Send bytes over a connection, and wait until they are there. """
    one.sendall(bytes(count))
    while count:
        piece = other.recv(count)
        if not piece:
            raise KsftFailEx("the connection has ended")
        count -= len(piece)


class Connection:
    """ A connection to the remote end, with both of its sockets here. """

    def __init__(self, cfg, kind="4", source=SOURCES[0]):
        self._cfg = cfg
        family = socket.AF_INET6 if kind == "6" else socket.AF_INET
        local, remote = _addresses(cfg, kind)
        with NetNSEnter(cfg.remote_ns):
            server = socket.create_server((remote, PORT), family=family)
        self.near = socket.socket(family)
        # Closing it resets the connection: the port can be used again at once.
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        with server:
            self.near.bind((local, source))
            for sock in (self.near, server):
                sock.settimeout(10)
            self.near.connect((remote, PORT))
            self.far, _ = server.accept()
        self.far.settimeout(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.near.close()
        self.far.close()

    def talk(self):
        """ Send a little in both directions, many times. """
        for _ in range(ROUNDS):
            _send(self.near, self.far, 100)
            _send(self.far, self.near, 100)

    def queue(self):
        """ Let the remote end send, and return the queue that receives it. """
        before = received(self._cfg)
        for _ in range(PIECES):
            _send(self.far, self.near, PIECE)

        def found():
            now = received(self._cfg)
            return [number for number, count in now.items() if count - before[number] >= FRAMES]
        wait_until(found, 5, "a queue receives the connection")
        return found()[0]


def _pin_polls(cfg):
    """ Let each queue be polled by a thread on a CPU of its own. Acknowledgements are sent where
    packets are received: that must not be another CPU than the one of the queue. """
    polls = sorted(cfg.netnl.napi_get({"ifindex": cfg.ifindex}, dump=True), key=itemgetter("id"))
    for cpu, poll in enumerate(polls[:len(CPUS)]):
        os.sched_setaffinity(poll["pid"], {cpu})


def _queues(cfg, kind="4", sources=SOURCES):
    """ Return the queues of connections, made on one CPU and on the other. """
    _pin_polls(cfg)
    # Else the first packet waits for the neighbour, and is sent where its answer comes.
    cmd(f"ping -q -c 1 -W 2 {_addresses(cfg, kind)[1]}")
    found = []
    for source in sources:
        for cpu in CPUS:
            with _on(cpu), Connection(cfg, kind, source) as connection:
                found.append(connection.queue())
    return list(zip(found[::2], found[1::2], strict=True))


def _check_all_follow(cfg, kind="4"):
    """ Check that all connections follow their CPUs. A timer on the other CPU may have sent a
    packet, but hardly each time. """
    for _ in range(3):
        found = _queues(cfg, kind)
        if found == [CPUS] * len(SOURCES):
            break
    ksft_eq(found, [CPUS] * len(SOURCES))


def _matches(cfg):
    """ Return the number of packets for which the card had a filter. """
    counts = [count for name, count in driver_stats(cfg.ifname).items()
              if name.endswith("fdir_match")]
    if not counts:
        raise KsftSkipEx("the driver has no such counter")
    return counts[0]


def _set_threaded(cfg, threaded):
    with open(f"/sys/class/net/{cfg.ifname}/threaded", "w", encoding="ascii") as file:
        file.write(str(threaded))


@ksft_disruptive
def set_up(cfg):
    """ There are two queues, and no rules. """
    cfg.count = channels(cfg)["combined-count"]
    _set_threaded(cfg, 1)
    set_channels(cfg, len(CPUS))
    switch(cfg, "off")


@ksft_variants([KsftNamedVariant("ipv4", "4"), KsftNamedVariant("ipv6", "6"),
                KsftNamedVariant("vlan", "vlan"), KsftNamedVariant("vlan_in_frame", "vlan", "off")])
def follows(cfg, kind, insert_tags="on"):
    """ A connection is received by the queue of the CPU that has opened it. """
    if kind == "vlan":
        ethtool(f"-K {cfg.ifname} txvlan {insert_tags}")
        defer(ethtool, f"-K {cfg.ifname} txvlan on")
        _add_vlan(cfg)
    _check_all_follow(cfg, kind)


def moves(cfg):
    """ A connection whose process moves to another CPU follows after some packets. """
    _pin_polls(cfg)
    with _on(0), Connection(cfg) as connection:
        for cpu in (0, 1, 0, 1):
            with _on(cpu):
                connection.talk()
                ksft_eq(connection.queue(), cpu, f"after some packets of CPU {cpu}")


def counted(cfg):
    """ The card counts the packets for which it has a filter. """
    before = _matches(cfg)
    _queues(cfg, sources=SOURCES[:1])
    # The C driver looks every two seconds.
    wait_until(lambda: _matches(cfg) >= before + 2 * FRAMES, 10, "they are counted")


def table_emptied(cfg):
    """ A table that is full is emptied: there is room for new connections again. """
    if is_emulated():
        raise KsftSkipEx("takes too long where the machine is emulated")
    local, remote = _addresses(cfg, "4")
    for source in MANY:
        with socket.socket() as sock:
            sock.bind((local, source))
            sock.connect_ex((remote, CLOSED))
    time.sleep(CHECK_UP)
    _check_all_follow(cfg)


@ksft_disruptive
def not_with_rules(cfg):
    """ While there can be rules, connections go where their hash or a rule says. """
    switch(cfg, "on")
    defer(switch, cfg, "off")
    before = _matches(cfg)
    for one, other in _queues(cfg):
        ksft_eq(one, other, "the queue is the same, whatever the CPU")
    ksft_eq(_matches(cfg), before, "packets with a filter")
    defer(delete_all, cfg)
    for number, source in enumerate(SOURCES):
        insert(cfg, f"flow-type tcp4 dst-port {source} action {number % 2} loc {number}")
    ksft_eq(_queues(cfg), [(number % 2,) * 2 for number in range(len(SOURCES))])


@ksft_disruptive
def after_rules(cfg):
    """ Without rules, connections follow their CPUs again. """
    _check_all_follow(cfg)


@ksft_disruptive
def not_with_a_table_of_users(cfg):
    """ A redirection table that users have set has the last word. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("ixgbe lets connections follow their CPUs all the same")
    _pin_polls(cfg)
    with _on(1), Connection(cfg) as connection:
        ksft_eq(connection.queue(), 1)
        cfg.model.ask("trace", port=0, phase="filters")
        defer(cfg.model.ask, "trace", port=0)
        before = cfg.model.writes(0, "FDIRCTRL")
        defer(ethtool, f"-X {cfg.ifname} default")
        ethtool(f"-X {cfg.ifname} equal 1")
        # Nor does one that there is already, when the filters have gone.
        wait_until(lambda: cfg.model.writes(0, "FDIRCTRL") > before, 20, "the filters go")
        connection.talk()
        ksft_eq(connection.queue(), 0)
    ksft_eq(_queues(cfg), [(0, 0)] * len(SOURCES))


@ksft_disruptive
def after_a_table_of_users(cfg):
    """ With the default, connections follow their CPUs again. """
    _check_all_follow(cfg)


@ksft_disruptive
def not_with_one_queue(cfg):
    """ With one queue, there is nothing to choose. """
    set_channels(cfg, 1)
    defer(set_channels, cfg, len(CPUS))
    before = _matches(cfg)
    ksft_eq(_queues(cfg, sources=SOURCES[:2]), [(0, 0)] * 2)
    ksft_eq(_matches(cfg), before, "packets with a filter")


@ksft_disruptive
def after_one_queue(cfg):
    """ With two queues again, connections follow their CPUs. """
    ksft_ge(channels(cfg)["combined-count"], len(CPUS))
    _check_all_follow(cfg)


@ksft_disruptive
def set_back(cfg):
    """ The number of queues is as it was, and they are polled in softirqs. """
    _set_threaded(cfg, 0)
    set_channels(cfg, cfg.count)
    ksft_eq(channels(cfg)["combined-count"], cfg.count)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__, ("ixgbe", "ixgbe_rust"), "other cards may not follow CPUs") as cfg:
        cfg.ethnl, cfg.netnl, cfg.count = EthtoolFamily(), NetdevFamily(), len(CPUS)
        why = None
        if os.cpu_count() < len(CPUS):
            why = "needs two CPUs"
        elif channels(cfg).get("combined-max", 0) < len(CPUS):
            why = "needs two queues"
        if why:
            skip_program(why)
        ksft_run(cfg.judged([set_up, follows, moves, counted, table_emptied, not_with_rules,
                             after_rules, not_with_a_table_of_users, after_a_table_of_users,
                             not_with_one_queue, after_one_queue, set_back]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
