#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
A pair of virtual ports whose driver has transmitted packets received: TCP
streams in both directions, with loss, compared by checksum. TCP transmits
clones of the packets that it sends again, and nothing else verifies the data:
it does not have a checksum on the way.
"""

import hashlib
import mmap
import os
import re
import socket
import time
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, NetNS, bkg, cmd, ethtool, ip
from lib.py import ksft_eq, ksft_exit, ksft_gt, ksft_run, ksft_variants
from lib.py.support import Task, insert_module, ip_batch, is_emulated
from lib.py.support import FRAME, remove_module, skip_program, wait_until
from tcp_stream_receive import PATIENCE, receive

MODULE = "rust_net_pair"
NETDEVS = Path("/sys/class/net")
ADDRESSES = ("10.9.0.1", "10.9.0.2")
PORT = 5001
ETH_P_ALL = 3
# Streams in which at least one packet is lost.
LOSING_ROUNDS = 30


class Port:
    """ One of the ports, in a namespace of its own. """

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.ns = NetNS()
        ip(f"link set {name} netns {self.ns.name}")
        ip_batch(["link set lo up", f"link set {name} up",
                  f"addr add {address}/24 dev {name}"], ns=self.ns)

    def offload(self, options):
        """ Change features of the port. """
        ethtool(f"-K {self.name} {options}", ns=self.ns)

    def features(self):
        """ Return the features of the port. """
        return ethtool(f"-k {self.name}", json=True, ns=self.ns)[0]

    def lose(self, percent):
        """ Lose that many packets on the way out, at random. """
        if percent:
            cmd(f"tc qdisc replace dev {self.name} root netem loss {percent}% "
                "delay 1ms limit 10000", ns=self.ns)
        else:
            cmd(f"tc qdisc del dev {self.name} root", ns=self.ns, fail=False)

    def retransmitted(self):
        """ Return the number of TCP segments that were sent again. """
        said = cmd("cat /proc/net/snmp", ns=self.ns).stdout
        names, values = re.findall(r"^Tcp: (.+)$", said, re.M)
        return int(dict(zip(names.split(), values.split(), strict=True))["RetransSegs"])

    def counted(self, name):
        """ Return a counter of the port. """
        said = ip(f"-s link show {self.name}", json=True, ns=self.ns)[0]
        direction, counter = name.split("_")
        return said["stats64"][direction][counter]


class Pair:
    """ Both ports. """

    def __init__(self):
        before = set(os.listdir(NETDEVS))
        insert_module(MODULE)
        names = sorted(set(os.listdir(NETDEVS)) - before)
        self.ports = [Port(name, address)
                      for name, address in zip(names, ADDRESSES, strict=True)]

    def close(self):
        """ Remove the ports, then their namespaces. """
        remove_module(MODULE)
        for port in self.ports:
            port.ns.__exit__(None, None, None)


def _receive(address):
    with socket.create_server((address, PORT)) as server:
        return receive(server)


def _connect(address):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, PORT), PATIENCE)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _send(address, size, enough=b"\1"):
    """ Send at least so much, and go on until it is told that this is enough. """
    # Its period is not that of packets.
    block = os.urandom(1_000_003)
    digest, sent = hashlib.blake2b(), 0
    with _connect(address) as peer:
        while sent < size or not enough[0]:
            piece = block[:max(size - sent, 0) or len(block)]
            digest.update(piece)
            peer.sendall(piece)
            sent += len(piece)
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)
    return [sent, digest.hexdigest()]


def _watch(name):
    """ Read all packets of a port: they are cloned for that. """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                       socket.htons(ETH_P_ALL)) as sock:
        sock.bind((name, ETH_P_ALL))
        while sock.recv(64):
            pass


def _send_frame(name):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((name, 0))
        sock.send(FRAME)


def _streams(cfg, size):
    """ Send in both directions at once, and compare sizes and checksums. """
    ends = []
    for port, peer in (cfg.ports, cfg.ports[::-1]):
        ends.append((Task(_receive, peer.address, ns=peer.ns.name),
                     Task(_send, peer.address, size, ns=port.ns.name)))
    for receiver, sender in ends:
        ksft_eq(receiver.result(PATIENCE), sender.result(PATIENCE))


def reach(cfg):
    """ The ports reach each other. """
    for port, peer in (cfg.ports, cfg.ports[::-1]):
        cmd(f"ping -q -c 5 -i 0.05 -W 2 {peer.address}", ns=port.ns.name)


def reach_with_fragments(cfg):
    """ Packets that are longer than the MTU arrive. """
    one, other = cfg.ports
    cmd(f"ping -q -c 5 -i 0.05 -W 2 -s 8000 {other.address}", ns=one.ns.name)


def gro_is_on(cfg):
    """ Received packets are merged. """
    for port in cfg.ports:
        ksft_eq(port.features()["generic-receive-offload"]["active"], True)


OFFLOADS = {
    "tso": "tso on gso on",
    "gso": "tso off gso on",
    # The driver gets the clones of TCP.
    "segments": "tso off gso off",
    "checksums": "tso off gso off tx off",
}


@ksft_variants([KsftNamedVariant(f"{name}_{'loss' if loss else 'no_loss'}{'_watched' * watched}",
                                 name, loss, watched)
                for name in OFFLOADS for loss, watched in ((0, 0), (3, 0), (3, 1))])
def stream(cfg, name, loss, watched):
    """
    TCP streams arrive as they were sent. The queue loses packets of up to
    64 KiB, before they are split: a few streams may pass without a loss.
    """
    for port in cfg.ports:
        port.offload("tx on")
        port.offload(OFFLOADS[name])
        port.lose(loss)
    before = [port.retransmitted() for port in cfg.ports]
    readers = [Task(_watch, port.name, ns=port.ns.name) for port in cfg.ports if watched]

    for _ in range(LOSING_ROUNDS if loss else 1):
        _streams(cfg, cfg.size)
        after = [port.retransmitted() for port in cfg.ports]
        if all(now > then for now, then in zip(after, before, strict=True)):
            break
    for reader in readers:
        ksft_eq(bool(reader.running()), True)
        reader.kill()
    for port, then, now in zip(cfg.ports, before, after, strict=True):
        port.lose(0)
        if loss:
            ksft_gt(now, then, "segments sent again")


def counters(cfg):
    """ The ports count what they have sent and received. """
    one, other = cfg.ports
    for port, peer in ((one, other), (other, one)):
        wait_until(lambda port=port, peer=peer:
                   port.counted("tx_packets") == peer.counted("rx_packets"),
                   5, "sent packets are received")
        ksft_gt(port.counted("tx_packets"), 0)


def counted_when_received(cfg):
    """ A port that is down counts a packet when it is up again. """
    one, other = cfg.ports
    ip(f"link set {other.name} down", ns=other.ns)
    sent, received = one.counted("tx_packets"), other.counted("rx_packets")
    Task(_send_frame, one.name, ns=one.ns.name).result()
    ksft_gt(one.counted("tx_packets"), sent)
    ksft_eq(other.counted("rx_packets"), received)

    ip(f"link set {other.name} up", ns=other.ns)
    wait_until(lambda: one.counted("tx_packets") == other.counted("rx_packets"),
               5, "sent packets are received")


def _passes(one, other, count=100):
    """ Wait until so many more packets have come through. """
    for port, name in ((one, "tx_packets"), (other, "rx_packets")):
        before = port.counted(name)
        wait_until(lambda port=port, name=name, before=before:
                   port.counted(name) >= before + count, 30, "packets come through")


def down_and_up(cfg):
    """ The ports go down and up under load, and the streams go on. """
    one, other = cfg.ports
    enough = mmap.mmap(-1, 1)
    receiver = Task(_receive, other.address, ns=other.ns.name)
    sender = Task(_send, other.address, cfg.size, enough, ns=one.ns.name)
    for port in (one, other, one, other):
        _passes(one, other)
        ip(f"link set {port.name} down", ns=port.ns)
        ip(f"link set {port.name} up", ns=port.ns)
    _passes(one, other)
    enough[0] = 1
    ksft_eq(receiver.result(PATIENCE), sender.result(PATIENCE))


def removed_under_load(cfg):
    """ The module goes away under load, and comes back. """
    one, other = cfg.ports
    with bkg(f"ping -q -f -w 60 {other.address}", ns=one.ns.name):
        _passes(one, other)
        remove_module(MODULE)
    insert_module(MODULE)


def main():
    """ Ksft boiler plate main """

    try:
        insert_module(MODULE)
        remove_module(MODULE)
    except CmdExitFailure:
        skip_program("this kernel has no CONFIG_SAMPLE_RUST_NET_PAIR")
    insert_module("sch_netem")
    cfg = Pair()
    try:
        cfg.size = 1_000_000 if is_emulated() else 4_000_000
        ksft_run([reach, reach_with_fragments, gro_is_on, stream, counters,
                  counted_when_received, down_and_up, removed_under_load], args=(cfg, ))
    finally:
        cfg.close()
    ksft_exit()


if __name__ == "__main__":
    main()
