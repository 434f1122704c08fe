#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Many senders in front of one qdisc, enqueued by the list in C and by the combiner
in Rust: no packet is lost, duplicated or reordered.
"""

import contextlib
import ctypes
import socket
import struct
from pathlib import Path

from lib.py import KsftNamedVariant, NetNS, NetNSEnter, cmd, ip, ksft_eq
from lib.py import ksft_exit, ksft_gt, ksft_pr, ksft_run, ksft_variants
from lib.py import datagrams, qdisc
from lib.py.datagrams import Flow, Plan
from lib.py.peer import PeerEnv
from lib.py.support import ip_batch, is_emulated, skip_program, wait_until

# Both devices have the same address, since a device without ARP sends to its
# own. With ARP, packets that wait for a reply after the device went up would be
# overtaken by later ones.
MAC = "02:00:00:00:08:01"
ADDRESSES = ("10.8.0.1", "10.8.0.2")
ROOMY = {"pfifo": "pfifo limit 20000", "bfifo": "bfifo limit 20000000",
         "fq": "fq limit 20000 flow_limit 20000"}
SMALL = {"pfifo": "pfifo limit 2", "bfifo": "bfifo limit 400",
         "fq": "fq limit 20000 flow_limit 2"}
PATIENT = 20.0
LONG = 60.0
ETH_P_ALL, SO_ATTACH_FILTER = 3, 26
# Instructions of the classic BPF: load a number, return 0. A filter has no more than so many.
LOAD, RETURN, LONGEST = struct.pack("=HBBI", 0, 0, 0, 0), struct.pack("=HBBI", 6, 0, 0, 0), 4096


class Pair:
    """ Two namespaces connected by a veth pair. """

    def __init__(self):
        self.ns = (NetNS(), NetNS())
        source, target = (ns.name for ns in self.ns)
        ip(f"-netns {source} link add v0 address {MAC} type veth "
           f"peer name v1 address {MAC} netns {target}")
        for ns, name, address in zip((source, target), ("v0", "v1"), ADDRESSES, strict=True):
            ip_batch([f"addr add {address}/24 dev {name}", "link set lo up",
                      f"link set {name} arp off", f"link set {name} up"], ns=ns)
        self.root = qdisc.Root("v0", source)

    def plan(self, **fields):
        """ Return a plan for datagrams from one to the other. """
        source, target = (ns.name for ns in self.ns)
        return Plan(ADDRESSES[1], source=source, target=target, **fields)

    def receive_on_one_cpu(self):
        """
        Receive on one CPU: several would reorder the packets of several CPUs.
        """
        # ip netns exec shows the interfaces of the namespace in /sys.
        cmd(["ip", "netns", "exec", self.ns[1].name, "sh", "-c",
             "echo 1 >/sys/class/net/v1/queues/rx-0/rps_cpus"], shell=False)

    @contextlib.contextmanager
    def sends_slowly(self):
        """
        Let each transmission take long, for the filters of sockets that look on: the other CPU
        fills the queue meanwhile.
        """
        code = ctypes.create_string_buffer((LONGEST - 1) * LOAD + RETURN)
        program = struct.pack("@HP", LONGEST, ctypes.addressof(code))
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                with NetNSEnter(self.ns[0].name):
                    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
                stack.enter_context(sock)
                sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
                sock.bind(("v0", ETH_P_ALL))
            yield

    def set(self, state):
        """ Set the sending device up or down. """
        ip(f"link set v0 {state}", ns=self.ns[0].name)

    def close(self):
        """ Delete the namespaces and their devices. """
        for ns in self.ns:
            ns.__exit__(None, None, None)


def pair_connected(cfg):
    """ The namespaces of the veth pair reach each other. """
    cmd(f"ping -q -c 1 -W 5 {ADDRESSES[1]}", ns=cfg.pair.ns[0].name)


def device_connected(cfg):
    """ The remote end of the device answers. """
    cmd(f"ping -q -c 1 -W 5 {cfg.remote_addr_v['4']}")


@ksft_variants(list(qdisc.WAYS))
def way(_cfg, how):
    """ This way to enqueue packets can be selected. """
    qdisc.way(how)


@ksft_variants([KsftNamedVariant(f"{how}_{kind}", how, kind)
                for how in qdisc.WAYS for kind in ROOMY])
def in_order(cfg, how, kind):
    """ All datagrams of 6 senders arrive once and in order. """
    qdisc.way(how)
    cfg.pair.root.replace(ROOMY[kind])
    datagrams.run(cfg.pair.plan(count=2000, patience=PATIENT)).check_all()


@ksft_variants([KsftNamedVariant(f"{how}_{kind}", how, kind)
                for how in qdisc.WAYS for kind in SMALL])
def no_room(cfg, how, kind):
    """ The qdisc counts each drop, and the others arrive in order. """
    qdisc.way(how)
    root = cfg.pair.root
    root.replace(SMALL[kind])
    before = root.dropped()

    def dropped():
        return root.dropped() - before

    with cfg.pair.sends_slowly():
        flow = Flow(cfg.pair.plan(seconds=LONG))
        try:
            flow.passes(500)
            # It is full once a CPU enqueues while the other one transmits.
            wait_until(dropped, LONG, "a datagram finds no room", sleep=0.01)
            flow.end()
            result = flow.finish(dropped=dropped)
        finally:
            flow.stop()
    ksft_pr(f"{dropped()} dropped")
    result.check_order()
    ksft_gt(dropped(), 0, "dropped")
    ksft_eq(result.taken, result.received + dropped(), "taken; received and dropped")


@ksft_variants(list(qdisc.WAYS))
def sender_killed(cfg, how):
    """
    One of 6 senders is killed: all datagrams sent arrive once and in order.
    """
    qdisc.way(how)
    cfg.pair.root.replace(ROOMY["pfifo"])
    flow = Flow(cfg.pair.plan(count=4000, patience=PATIENT))
    try:
        flow.kill_one_half_way()
        flow.finish().check_all()
    finally:
        flow.stop()


def _switch(_cfg, flow):
    names = list(qdisc.WAYS)
    for count in range(50):
        qdisc.set_way(names[count % 2])
        flow.passes()


def _replace(cfg, flow):
    kinds = (ROOMY["pfifo"], ROOMY["fq"])
    for count in range(100):
        cfg.pair.root.replace(kinds[count % 2])
        if count % 10 == 9:
            flow.passes()


def _down_up(cfg, flow):
    for _ in range(20):
        cfg.pair.set("down")
        cfg.pair.set("up")
        flow.passes()


UNDER_LOAD = [
    KsftNamedVariant("switched_50_times", "rust", _switch, True),
    KsftNamedVariant("replaced_100_times", "rust", _replace, False),
    KsftNamedVariant("down_and_up_20_times", "rust", _down_up, False),
]


def under_load(cfg, how, change, lossless):
    """ The configuration changes while datagrams are sent. """
    qdisc.way(how)
    cfg.pair.root.replace(ROOMY["pfifo"])
    # Few are under way, so that those of now arrive soon.
    flow = Flow(cfg.pair.plan(seconds=300, ahead=100, patience=PATIENT if lossless else 0.05))
    try:
        flow.passes()
        change(cfg, flow)
        flow.passes()
        flow.end()
        cfg.results[change, how] = flow.finish()
    finally:
        flow.stop()


def came_right(cfg, how, change, lossless):
    """
    Datagrams arrived once and in order, all of them if the change drops none.
    """
    result = cfg.results[change, how]
    if lossless:
        result.check_all()
    else:
        result.check_order()
        for sender, (taken, received) in enumerate(result.each):
            ksft_eq(received > 0 and received <= taken, True,
                    f"sender {sender}: {taken} taken, {received} received")


def works_afterwards(cfg, _how, _change, _lossless):
    """
    All datagrams of 6 senders arrive once and in order after the change.
    """
    qdisc.way("rust")
    cfg.pair.root.replace(ROOMY["pfifo"])
    datagrams.run(cfg.pair.plan(count=500, patience=PATIENT)).check_all()


@ksft_variants([KsftNamedVariant(f"{how}_{kind}", how, kind)
                for how in qdisc.WAYS for kind in ("pfifo", "fq")])
def device(cfg, how, kind):
    """
    All datagrams arrive through a device that stops and wakes its queue. Fewer
    are under way than the receiver has descriptors.
    """
    qdisc.way(how)
    qdisc.Root(cfg.ifname).replace(ROOMY[kind])
    plan = Plan(cfg.remote_addr_v["4"], target=cfg.remote.name, count=2000,
                ahead=48, patience=PATIENT)
    datagrams.run(plan).check_all()


def loads():
    """ Yield the cases of each change in turn. """
    for variant in UNDER_LOAD:
        for case in (under_load, came_right, works_afterwards):
            yield ksft_variants([variant])(case)


def main():
    """ Ksft boiler plate main """

    if is_emulated():
        skip_program("takes too long where the machine is emulated")
    if not qdisc.has_ways():
        skip_program("this kernel has no CONFIG_NET_XMIT_LLIST_RUST")
    # Packets are dropped only where the drop is counted.
    was = {name: qdisc.set_core(name, 100000)
           for name in ("netdev_max_backlog", "qdisc_max_burst")}
    try:
        with PeerEnv(__file__, v6=False) as cfg:
            cfg.results = {}
            cfg.pair = Pair()
            try:
                cfg.pair.receive_on_one_cpu()
                cfg.know_each_other()
                ksft_run(cfg.judged([pair_connected, way, in_order, no_room, sender_killed,
                                     *loads(), device_connected, device]), args=(cfg, ))
            finally:
                cfg.pair.close()
                cmd(f"tc qdisc del dev {cfg.ifname} root", fail=False)
    finally:
        for name, value in was.items():
            Path(qdisc.CORE / name).write_text(value, encoding="utf-8")
    ksft_exit()


if __name__ == "__main__":
    main()
