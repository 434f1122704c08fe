#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
LRO: the device joins packets of a TCP connection to larger ones. The streams
stay as they were sent, and descriptors that lie do no harm.
"""

import contextlib
import hashlib
import os
import socket
import struct
import threading
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx, NetNSEnter
from lib.py import cmd, defer, ethtool, ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge
from lib.py import ksft_gt, ksft_raises, ksft_run, ksft_true, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import beside, driver_stats, make_room, netdev_stat, restart_rx_queue
from lib.py.support import skip_program, sum16, wait_until

ETH_P_ALL = 3
PATIENCE = 60
PORT = 7100
SIZE = 3_000_000
# Connections that take turns, with so many segments of so many bytes each.
PORTS = range(7201, 7205)
SEGMENTS = 20
SEGMENT = 1000
# Of joined packets, and of the larger ones.
COUNTERS = {
    "ixgbe_rust": ("rx_lro_segments", "rx_lro_packets"),
    "ixgbe": ("hw_rsc_aggregated", "hw_rsc_flushed"),
}
# kind, value: lies about joined packets
LIES = {
    "goes_on_at_0": ("rx_next", 0),
    "goes_on_at_1": ("rx_next", 1),
    "goes_on_at_the_end": ("rx_next", 511),
    "goes_on_behind_the_end": ("rx_next", 512),
    "goes_on_nowhere": ("rx_next", 65535),
    "of_none": ("rx_count", 0),
    "of_one": ("rx_count", 1),
    "of_many": ("rx_count", 15),
    "length_of_0": ("rx_length", 0),
    "length_of_1": ("rx_length", 1),
    "greatest_length": ("rx_length", 65535),
    "no_end_of_packet": ("rx_no_eop", 0),
    "write_back_of_ones": ("rx_ones", 0),
    "all_error_bits": ("rx_error", 0xFFF00000),
}
# A packet that goes on in a buffer that the device has got may be of the right length: nothing
# tells that the data are of another one, as the device has verified the checksums.
BELIEVED = ("goes_on_at_0", "goes_on_at_1", "goes_on_at_the_end")


def _is_on(cfg, feature="large-receive-offload"):
    return ethtool(f"-k {cfg.ifname}", json=True)[0][feature]["active"]


def _switch(cfg, state):
    """ Turn LRO on or off at both ends. """
    ethtool(f"-K {cfg.ifname} lro {state}")
    ethtool(f"-K {cfg.remote_ifname} lro {state}", host=cfg.remote)


@contextlib.contextmanager
def _lro(cfg):
    _switch(cfg, "on")
    try:
        _reach(cfg)
        yield
    finally:
        _switch(cfg, "off")
        _reach(cfg)


def _reach(cfg):
    """ Both ends are up again. """
    cfg.reach(PATIENCE)


def _counts(cfg):
    """ Return the numbers of joined packets, and of larger ones. """
    stats = driver_stats(cfg.ifname)
    return [stats[name] for name in COUNTERS[cfg.driver]]


class _Side(threading.Thread):
    """ One direction of a connection: sends, and checks what arrives. """

    def __init__(self, sender, receiver, data):
        super().__init__(daemon=True)
        self._sender, self._receiver, self._data = sender, receiver, data
        self._feeder = threading.Thread(target=self._feed, daemon=True)
        self.error = None
        self.differs = False

    def _feed(self):
        try:
            self._sender.sendall(self._data)
            self._sender.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.error = error

    def run(self):
        self._feeder.start()
        got = hashlib.blake2b()
        try:
            while piece := self._receiver.recv(1 << 16):
                got.update(piece)
        except OSError as error:
            self.error = error
            return
        self._feeder.join(PATIENCE)
        self.differs = got.digest() != hashlib.blake2b(self._data).digest()


def _exchange(cfg, flows=1, size=SIZE, believed=False):
    """ Streams in both directions arrive as they were sent, unless lies are @believed. """
    local, remote = cfg.addr_v["4"], cfg.remote_addr_v["4"]
    with NetNSEnter(cfg.remote_ns):
        server = socket.create_server((remote, PORT))
    with contextlib.ExitStack() as stack:
        stack.enter_context(server)
        server.settimeout(PATIENCE)
        sides = []
        for _ in range(flows):
            near = stack.enter_context(
                socket.create_connection((remote, PORT), PATIENCE, (local, 0)))
            far = stack.enter_context(server.accept()[0])
            far.settimeout(PATIENCE)
            # The far end has the most to send: the near one is looked at.
            sides += [_Side(far, near, os.urandom(size)),
                      _Side(near, far, os.urandom(size // 4))]
        for side in sides:
            side.start()
        for side in sides:
            side.join(2 * PATIENCE)
            ksft_true(not side.is_alive() and side.error is None, f"a stream: {side.error}")
            ksft_true(believed or not side.differs, "the data that were sent have arrived")


def _check_joins(cfg, flows=1, size=SIZE):
    """ Streams arrive as they were sent, and packets are joined. """
    before = _counts(cfg)
    _exchange(cfg, flows, size)
    segments, packets = (now - then for now, then in zip(_counts(cfg), before, strict=True))
    # Packets of up to 1448 bytes: a part of them has come alone.
    ksft_ge(segments, size * flows // 1448 // 4, "joined packets")
    ksft_gt(packets, 0, "larger packets")
    ksft_ge(segments, packets, "each is of one at least")
    return segments, packets


def off_by_default(cfg):
    """ LRO is off until users turn it on, and then nothing is joined. """
    ksft_eq(_is_on(cfg), False)
    before = _counts(cfg)
    _exchange(cfg)
    ksft_eq(_counts(cfg), before)


@ksft_variants([KsftNamedVariant(f"{flows}_flows", flows) for flows in (1, 2, 12)])
def streams(cfg, flows):
    """ Streams of that many connections arrive as they were sent. """
    with _lro(cfg):
        segments, packets = _check_joins(cfg, flows, size=SIZE // flows)
        ksft_ge(segments, 2 * packets, "several packets become one")


def _sum(data):
    return sum16(data) ^ 0xffff


def _segment(macs, addrs, port, number):
    """ Return a frame with a segment of TCP, in which each byte tells the connection. """
    def tcp(checksum):
        return struct.pack("!HHIIBBHHH", port, PORT, 1 + number * SEGMENT, 1, 5 << 4, 0x10, 1024,
                           checksum, 0) + bytes([port & 0xff]) * SEGMENT

    def ipv4(checksum):
        return struct.pack("!BBHHHBBH", 0x45, 0, 40 + SEGMENT, number, 0x4000, 64,
                           socket.IPPROTO_TCP, checksum) + addrs

    pseudo = addrs + struct.pack("!HH", socket.IPPROTO_TCP, 20 + SEGMENT)
    return macs + b"\x08\0" + ipv4(_sum(ipv4(0))) + tcp(_sum(pseudo + tcp(0)))


def _received(sock, left):
    """
    Return the port and the data of each packet of those connections, with @left bytes of data in
    all of them.
    """
    with contextlib.suppress(TimeoutError):
        while True:
            sock.settimeout(10 if left > 0 else 0.3)
            frame = sock.recv(65536)
            ports, length = struct.unpack_from("!HH", frame, 34), frame[16] << 8 | frame[17]
            if frame[12:14] == b"\x08\0" and ports[0] in PORTS and ports[1] == PORT:
                data = frame[54:14 + length]
                left -= len(data)
                yield ports[0], data


@ksft_disruptive
def take_turns(cfg):
    """ Packets of connections that take turns are joined with those of their own. """
    links = (ip(f"link show dev {cfg.ifname}", json=True),
             ip(f"link show dev {cfg.remote_ifname}", json=True, host=cfg.remote))
    macs = b"".join(bytes.fromhex(link[0]["address"].replace(":", "")) for link in links)
    addrs = socket.inet_aton(cfg.remote_addr_v["4"]) + socket.inet_aton(cfg.addr_v["4"])
    frames = [_segment(macs, addrs, port, number)
              for number in range(SEGMENTS) for port in PORTS]
    # The C driver adapts with 1.
    slow, normal = {"ixgbe": ("rx-usecs 1000", "rx-usecs 1")}.get(
        cfg.driver, ("adaptive-rx off rx-usecs 1000", "adaptive-rx on"))
    for setting, undo in ((f"-K {cfg.ifname} gro off", f"-K {cfg.ifname} gro on"),
                          (f"-C {cfg.ifname} {slow}", f"-C {cfg.ifname} {normal}")):
        ethtool(setting)
        defer(ethtool, undo)
    with _lro(cfg), contextlib.ExitStack() as undo:
        near = undo.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                                socket.htons(ETH_P_ALL)))
        # Nobody reads before the last frame has been sent.
        make_room(near, 8 << 20)
        near.bind((cfg.ifname, ETH_P_ALL))
        with NetNSEnter(cfg.remote_ns):
            far = undo.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            far.bind((cfg.remote_ifname, 0))
        for frame in frames:
            far.send(frame)
        received = list(_received(near, len(PORTS) * SEGMENTS * SEGMENT))
    longest = 0
    for port in PORTS:
        data = [one for of, one in received if of == port]
        ksft_eq((sum(map(len, data)), set(b"".join(data))), (SEGMENTS * SEGMENT, {port & 0xff}))
        longest = max(longest, *map(len, data))
    ksft_gt(longest, SEGMENT, "several packets become one")


def off_again(cfg):
    """ With LRO turned off, nothing is joined any more. """
    with _lro(cfg):
        _check_joins(cfg)
    before = _counts(cfg)
    _exchange(cfg)
    ksft_eq(_counts(cfg), before)


@ksft_variants([KsftNamedVariant(f"mtu_{mtu}", mtu) for mtu in (600, 4000, 9000)])
def other_mtu(cfg, mtu):
    """ Packets of another size are joined. """
    for dev, host in ((cfg.ifname, None), (cfg.remote_ifname, cfg.remote)):
        ip(f"link set {dev} mtu {mtu}", host=host)
        defer(_reach, cfg)
        defer(ip, f"link set {dev} mtu 1500", host=host)
    with _lro(cfg):
        before = _counts(cfg)
        _exchange(cfg, 2)
        ksft_ge(_counts(cfg)[0] - before[0], SIZE // mtu // 4, "joined packets")


def larger_than_the_mtu(cfg):
    """ Without GRO, larger packets than the MTU come with LRO only. """
    ethtool(f"-K {cfg.ifname} gro off")
    defer(ethtool, f"-K {cfg.ifname} gro on")
    longest = {}
    for state in ("off", "on"):
        _switch(cfg, state)
        _reach(cfg)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as sock:
            make_room(sock, 8 << 20)
            sock.bind((cfg.ifname, ETH_P_ALL))
            sock.settimeout(0.5)
            _exchange(cfg, size=SIZE // 10)
            longest[state] = 0
            with contextlib.suppress(TimeoutError):
                while True:
                    size, _, _, sender = sock.recvmsg_into([bytearray(64)], 0, socket.MSG_TRUNC)
                    if sender[2] != socket.PACKET_OUTGOING:
                        longest[state] = max(longest[state], size)
    _switch(cfg, "off")
    _reach(cfg)
    ksft_true(longest["off"] <= 1514, f"{longest}")
    ksft_gt(longest["on"], 2000, f"{longest}")


def forwarding_turns_it_off(cfg):
    """ A host that forwards does not join packets. """
    setting = Path(f"/proc/sys/net/ipv4/conf/{cfg.ifname}/forwarding")
    # Only a change has an effect; and what comes after this may need the old setting.
    defer(setting.write_text, setting.read_text())
    setting.write_text("0")
    with _lro(cfg):
        ksft_eq(_is_on(cfg), True)
        setting.write_text("1")
        ksft_eq(_is_on(cfg), False)
        _reach(cfg)
        before = _counts(cfg)
        _exchange(cfg)
        ksft_eq(_counts(cfg), before)


def not_without_checksums(cfg):
    """ Joined packets have no checksum of their own: LRO needs that of the device. """
    with _lro(cfg):
        ethtool(f"-K {cfg.ifname} rx off")
        defer(ethtool, f"-K {cfg.ifname} rx on")
        ksft_eq(_is_on(cfg), False)
        _reach(cfg)
        before = _counts(cfg)
        _exchange(cfg)
        ksft_eq(_counts(cfg), before)
        ethtool(f"-K {cfg.ifname} rx on")
        ksft_eq(_is_on(cfg), True)
        _reach(cfg)
        _check_joins(cfg)


def needs_moderation(cfg):
    """ Packets are joined between two interrupts: there has to be some time between them. """
    if cfg.driver != "ixgbe_rust":
        raise KsftSkipEx("the C driver turns it off without a word")
    defer(ethtool, f"-C {cfg.ifname} adaptive-rx on")
    with _lro(cfg):
        for usecs in (0, 4):
            with ksft_raises(CmdExitFailure):
                ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs {usecs}")
        for usecs in (8, 200):
            ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs {usecs}")
            _check_joins(cfg)
    ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs 0")


@ksft_disruptive
def stays_off_without_moderation(cfg):
    """ It cannot be turned on without that time, and nothing else fails for it. """
    if cfg.driver != "ixgbe_rust":
        raise KsftSkipEx("the C driver shows it as on")
    defer(_reach, cfg)
    defer(ethtool, f"-C {cfg.ifname} adaptive-rx on")
    defer(ethtool, f"-K {cfg.ifname} lro off rxvlan on")
    defer(ip, f"link set {cfg.ifname} up")
    ethtool(f"-C {cfg.ifname} adaptive-rx off rx-usecs 0")
    for state in ("up", "down"):
        ip(f"link set {cfg.ifname} {state}")
        # Nothing has changed, which ethtool takes for an error.
        cmd(f"ethtool -K {cfg.ifname} lro on", fail=False)
        ksft_eq(_is_on(cfg), False, state)
        for vlan in ("off", "on"):
            ethtool(f"-K {cfg.ifname} rxvlan {vlan}")
            ksft_eq(_is_on(cfg, "rx-vlan-offload"), vlan == "on", state)
    ip(f"link set {cfg.ifname} up")
    _reach(cfg)
    # It is wanted still.
    ethtool(f"-C {cfg.ifname} rx-usecs 8")
    ksft_eq(_is_on(cfg), False)
    ethtool(f"-K {cfg.ifname} rxvlan off")
    ksft_eq(_is_on(cfg), True)
    _reach(cfg)
    _exchange(cfg)


def _received_by_now(cfg):
    return netdev_stat(cfg.ifname, "rx_packets")


@ksft_disruptive
def switched_under_load(cfg):
    """ Streams go on while LRO is turned on and off. """
    if cfg.driver != "ixgbe_rust":
        # Seen: ixgbe_clean_tx_ring(), called by ixgbe_down(), found no end of the ring.
        raise KsftSkipEx("the C driver may hang if it is reset under load")
    with beside(_exchange, cfg, 4, SIZE, seconds=4 * PATIENCE) as exchange:
        for state in ("on", "off") * 3:
            received = _received_by_now(cfg)
            ethtool(f"-K {cfg.ifname} lro {state}")
            wait_until(lambda before=received: not exchange.is_alive()
                       or _received_by_now(cfg) > before, PATIENCE, "packets arrive", 0.02)
    _reach(cfg)


@ksft_disruptive
def queues_restart(cfg):
    """ Packets are joined while receive queues are restarted, and after that. """
    if cfg.driver != "ixgbe_rust":
        raise KsftSkipEx("the C driver restarts no single queue")
    queues = len(list(Path(f"/sys/class/net/{cfg.ifname}/queues").glob("rx-*")))
    with _lro(cfg):
        with beside(_exchange, cfg, 4, SIZE, seconds=4 * PATIENCE):
            for _ in range(5):
                for queue in range(queues):
                    restart_rx_queue(cfg.ifindex, queue)
        _check_joins(cfg, 4)


@ksft_variants([KsftNamedVariant(name, name, *lie) for name, lie in LIES.items()])
def wrong_descriptors(cfg, name, kind, value):
    """ Streams arrive although descriptors lie, and those behind the lies as they were sent. """
    if cfg.driver != "ixgbe_rust":
        raise KsftSkipEx("the C driver trusts the device")
    # It stays on for the next ones: each change restarts both ends.
    if not _is_on(cfg):
        _switch(cfg, "on")
        _reach(cfg)
    cfg.model.fault(0, kind, 20, value)
    # Lost packets are sent again, the less often the more of them are lost.
    truth = threading.Timer(1, cfg.model.mend, (0,))
    truth.start()
    try:
        _exchange(cfg, 2, believed=name in BELIEVED)
    finally:
        truth.cancel()
        truth.join()
        cfg.model.mend(0)
    _check_joins(cfg)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        if cfg.driver not in COUNTERS:
            skip_program("the driver does not join packets")
        ksft_run(cfg.judged([off_by_default, streams, take_turns, off_again, other_mtu,
                             larger_than_the_mtu, forwarding_turns_it_off, not_without_checksums,
                             needs_moderation, stays_off_without_moderation, switched_under_load,
                             queues_restart, wrong_descriptors]),
                 args=(cfg, ))
        if _is_on(cfg):
            _switch(cfg, "off")
    ksft_exit()


if __name__ == "__main__":
    main()
