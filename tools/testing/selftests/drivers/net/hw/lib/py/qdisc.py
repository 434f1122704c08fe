# SPDX-License-Identifier: GPL-2.0

"""
Ways to enqueue packets to queueing disciplines, and qdisc options that tc does
not support.
"""

import os
import re
import socket
import struct
from pathlib import Path

from lib.py import defer, ksft_eq
from net.lib.py import tc

from .netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_REPLACE, Kernel
from .netlink import attribute, attributes

CORE = Path("/proc/sys/net/core")
SWITCH = CORE / "xmit_llist_rust"
# Its values.
WAYS = {"c": "0", "rust": "1"}

RTM_NEWQDISC, RTM_GETQDISC = 36, 38
TCA_KIND, TCA_OPTIONS = 1, 2
TC_H_ROOT = 0xFFFFFFFF
TCMSG = struct.Struct("=BxxxiIII")


def has_ways():
    """ Check whether the kernel has several ways to enqueue. """
    return SWITCH.exists()


def set_way(name):
    """ Select the code that enqueues packets to qdiscs. """
    SWITCH.write_text(WAYS[name], encoding="utf-8")
    ksft_eq(SWITCH.read_text(encoding="utf-8").strip(), WAYS[name], SWITCH.name)


def way(name):
    """ Select it for the rest of a case. """
    if has_ways():
        set_way(name)
        defer(set_way, "c")


def set_core(name, value):
    """ Set a variable of net.core and return the old value. """
    path = CORE / name
    was = path.read_text(encoding="utf-8").strip()
    path.write_text(str(value), encoding="utf-8")
    return was


class Root:
    """ The root qdisc of an interface. """

    def __init__(self, ifname, ns=None):
        self.ifname = ifname
        self.ns = ns

    def replace(self, kind):
        """ Replace it, with the syntax of tc. """
        tc(f"qdisc replace dev {self.ifname} root {kind}", ns=self.ns)

    def remove(self):
        """ Delete it, so that the default qdisc returns. """
        tc(f"qdisc del dev {self.ifname} root", ns=self.ns)

    def _shown(self):
        return tc(f"-s qdisc show dev {self.ifname} root", ns=self.ns).stdout

    def kind(self):
        """ Return its kind. """
        return self._shown().split()[1]

    def counted(self, name):
        """ Return the number of packets sent or dropped, or the backlog. """
        shown = self._shown()
        pattern = {"sent": r"Sent \d+ bytes (\d+) pkt", "dropped": r"dropped (\d+)",
                   "backlog": r"backlog \d+b (\d+)p",
                   "backlog_bytes": r"backlog (\d+)b"}[name]
        return int(re.search(pattern, shown)[1])


class RefusedOptions(Exception):
    """ The error message of the kernel. """


def _request(kind, flags, ifname, more=b"", parent=TC_H_ROOT):
    """
    Send a message about a qdisc, by default the root qdisc, and return the
    body of the answer.
    """
    body = TCMSG.pack(0, socket.if_nametoindex(ifname), 0, parent, 0) + more
    with Kernel() as kernel:
        answer = kernel.ask(kind, flags, body)
    if answer.code:
        raise RefusedOptions(f"{os.strerror(answer.code)}: {answer.text}")
    return answer.body


def fifo_limit(ifname):
    """ Return the limit of a root qdisc with the options of a FIFO. """
    body = _request(RTM_GETQDISC, NLM_F_ECHO, ifname)
    return struct.unpack("=I", attributes(body[TCMSG.size:])[TCA_OPTIONS])[0]


def replace_raw(ifname, kind, options, parent=TC_H_ROOT):
    """
    Create or change a qdisc, by default the root qdisc, with raw options.
    """
    more = attribute(TCA_KIND, kind.encode() + b"\0") + attribute(TCA_OPTIONS, options)
    _request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, ifname, more, parent)


def limit(packets):
    """ Encode the options of a FIFO. """
    return struct.pack("=I", packets)
