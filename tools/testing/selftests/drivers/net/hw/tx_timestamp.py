#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" Senders that ask for the time at which a packet leaves get it, in software. """

import select
import socket
import struct
import time

from lib.py import KsftFailEx, cmd, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_run
from lib.py.peer import PeerEnv

SO_TIMESTAMPING = 37
TX_SOFTWARE = 1 << 1
SOFTWARE = 1 << 4
# Of the layer that packets leave last, with the number of the packet.
OPT_ID = 1 << 7
SCM_TIMESTAMPING = 37
SIZES = (20, 1400, 4000)
IP_RECVERR = 11
# struct sock_extended_err; the last of these fields, ee_data, is the number of the packet.
EXTENDED_ERR = struct.Struct("=IBBBxII")


def reported(cfg):
    """ The device says that it takes these timestamps. """
    ksft_in("software-transmit", cmd(f"ethtool -T {cfg.ifname}").stdout)


def _sender():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SOFTWARE | SOFTWARE | OPT_ID)
    return sock


def _next_stamp(sock):
    """ Return the next timestamp, in seconds, and the number of its packet. """
    if not select.select([sock], [], [], 10)[0]:
        raise KsftFailEx("no timestamp")
    stamp = number = None
    for level, kind, data in sock.recvmsg(1 << 16, 1024, socket.MSG_ERRQUEUE)[1]:
        if (level, kind) == (socket.SOL_SOCKET, SCM_TIMESTAMPING):
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            stamp = seconds + nanoseconds / 1e9
        elif (level, kind) == (socket.IPPROTO_IP, IP_RECVERR):
            number = EXTENDED_ERR.unpack_from(data)[-1]
    return stamp, number


def _timestamps(cfg, sock, number):
    """ Return the timestamps of a packet: those that come before the one of another packet. """
    _send(cfg, sock, 20)
    found = []
    while True:
        stamp, of_packet = _next_stamp(sock)
        if of_packet > number:
            return found
        if of_packet == number:
            found.append(stamp)


def _send(cfg, sock, size):
    sock.sendto(bytes(size), (cfg.remote_addr_v["4"], 9))


def one_per_packet(cfg):
    """ Each packet has one timestamp, between its call and the answer to it. """
    with _sender() as sock:
        for number, size in enumerate(SIZES[:2]):
            before = time.time()
            _send(cfg, sock, size)
            got = _timestamps(cfg, sock, 2 * number)
            ksft_eq(len(got), 1, f"timestamps of a packet of {size} bytes")
            for stamp in got:
                ksft_ge(stamp, before - 0.001)
                ksft_ge(time.time(), stamp)


def each_fragment(cfg):
    """ A datagram that is fragmented has at least one. """
    with _sender() as sock:
        _send(cfg, sock, SIZES[2])
        ksft_ge(len(_timestamps(cfg, sock, 0)), 1)


def none_without_request(cfg):
    """ A sender that has not asked gets none. """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, _sender() as other:
        _send(cfg, sock, 20)
        # This one leaves behind it.
        _send(cfg, other, 20)
        _next_stamp(other)
        ksft_eq(select.select([sock], [], [], 0)[0], [])


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.know_each_other()
        ksft_run([reported, one_per_packet, each_fragment, none_without_request],
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
