#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Two hosts over the device: ping of several sizes, and TCP streams compared by
checksum, with and without scatter-gather.
"""

import errno
import hashlib
import os
import re
import socket
import tempfile
import time

from lib.py import KsftNamedVariant, KsftSkipEx, bkg, cmd, defer, ethtool
from lib.py import ksft_eq, ksft_exit, ksft_run, ksft_variants, rand_port
from lib.py import wait_port_listen
from lib.py.peer import PeerEnv
from lib.py.support import is_emulated

PATIENCE = 120
NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH)


@ksft_variants([
    KsftNamedVariant("0_bytes", "-s 0"),
    KsftNamedVariant("56_bytes", "-s 56"),
    KsftNamedVariant("1472_bytes", "-s 1472"),
    KsftNamedVariant("fragments", "-s 8000"),
])
def ping(cfg, options):
    """ The remote end answers packets of this size. """
    cmd(f"ping -q -c 5 -i 0.05 -W 2 {options} {cfg.remote_addr_v['4']}")


def ping_from_remote(cfg):
    """ The local end answers the remote end. """
    cmd(f"ping -q -c 5 -i 0.05 -W 2 {cfg.addr_v['4']}", host=cfg.remote)


def ping_v6(cfg):
    """
    The remote end answers over IPv6: neighbour discovery needs multicast.
    """
    cfg.require_ipver("6")
    cmd(f"ping -q -c 5 -i 0.05 -W 2 {cfg.remote_addr_v['6']}")


def ping_flood(cfg):
    """ A flood ping loses nothing. """
    said = cmd(f"ping -q -f -c 1000 -W 2 {cfg.remote_addr_v['4']}", timeout=120)
    lost = re.search(r"([0-9.]+)% packet loss", said.stdout)
    ksft_eq(float(lost[1]), 0)


def _source(size):
    """
    Return an unlinked file and its checksum. Its period is not that of
    packets.
    """
    block = os.urandom(1_000_003)
    digest = hashlib.blake2b()
    file = tempfile.TemporaryFile()
    left = size
    while left > 0:
        piece = block[:left]
        digest.update(piece)
        file.write(piece)
        left -= len(piece)
    file.seek(0)
    return file, digest.hexdigest()


def connect(address, port):
    """
    Connect to the remote end. It has no route while its link comes up: neighbours are not
    found then.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), PATIENCE)
        except OSError as error:
            if error.errno not in NO_ROUTE or time.monotonic() > end:
                raise
            time.sleep(0.1)


def _send(address, port, file, how):
    with connect(address, port) as peer:
        if how == "sendfile":
            # The pages go to the device as fragments.
            peer.sendfile(file)
        else:
            sizes = iter(range(1, 1 << 30, 37))
            while piece := file.read(1 + next(sizes) % 3000):
                peer.sendall(piece)
        peer.shutdown(socket.SHUT_WR)
        # Waiting for the end keeps the connection until all has arrived.
        peer.recv(1)


def transfer(cfg, size, how, ipver="4", address=None):
    """ Send to the remote end, or one of its addresses, and compare size and checksum. """
    cfg.require_ipver(ipver)
    file, digest = _source(size)
    port = rand_port()
    receiver = cfg.remote.deploy("tcp_stream_receive.py")
    with file, bkg(f"python3 {receiver} {port}", host=cfg.remote,
                   exit_wait=True) as peer:
        wait_port_listen(port, host=cfg.remote, deadline=PATIENCE)
        _send(address or cfg.remote_addr_v[ipver], port, file, how)
    ksft_eq(peer.stdout.split(), [str(size), digest])


@ksft_variants([
    KsftNamedVariant("sendfile", 5_000_000, 10, "sendfile", "4"),
    KsftNamedVariant("small_writes", 5_000_000, 1, "write", "4"),
    KsftNamedVariant("sendfile_v6", 5_000_000, 1, "sendfile", "6"),
])
def stream(cfg, size, times, how, ipver):
    """ A TCP stream arrives as it was sent. """
    # The C driver is known to work: less data is enough.
    known = cfg.driver == "ixgbe"
    if times > 1 and (known or is_emulated()):
        times = 2
    transfer(cfg, size * times, how, ipver)


def _scatter_gather(cfg):
    return ethtool(f"-k {cfg.ifname}", json=True)[0]["scatter-gather"]


def scatter_gather_is_on(cfg):
    """ Scatter-gather is on by default. """
    ksft_eq(_scatter_gather(cfg)["active"], True)


def stream_without_scatter_gather(cfg):
    """ A TCP stream arrives as it was sent without scatter-gather. """
    if _scatter_gather(cfg)["fixed"]:
        raise KsftSkipEx("the driver does not let scatter-gather be switched off")
    ethtool(f"-K {cfg.ifname} sg off")
    defer(ethtool, f"-K {cfg.ifname} sg on")
    ksft_eq(_scatter_gather(cfg)["active"], False)
    transfer(cfg, 5_000_000, "sendfile")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        ksft_run(cfg.judged([ping, ping_from_remote, ping_v6, ping_flood, stream,
                             scatter_gather_is_on, stream_without_scatter_gather]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
