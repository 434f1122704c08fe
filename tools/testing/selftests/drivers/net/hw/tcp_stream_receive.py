# SPDX-License-Identifier: GPL-2.0

"""
Accept one connection and read it to the end; print the size and the checksum
of the data.
"""

import hashlib
import socket
import sys

PATIENCE = 120


def receive(server):
    """ Accept a connection; return the size and the checksum of its data. """
    server.settimeout(PATIENCE)
    peer, _ = server.accept()
    peer.settimeout(PATIENCE)
    digest, size = hashlib.blake2b(), 0
    with peer:
        while piece := peer.recv(1 << 16):
            digest.update(piece)
            size += len(piece)
    return [size, digest.hexdigest()]


def main(port):
    """ Listen on all addresses. """
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    with socket.create_server(("", port), family=family,
                              dualstack_ipv6=both) as server:
        print(*receive(server))


if __name__ == "__main__":
    main(int(sys.argv[1]))
