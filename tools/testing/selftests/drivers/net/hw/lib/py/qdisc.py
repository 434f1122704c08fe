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

CORE = Path("/proc/sys/net/core")
# The values of net.core.xmit_llist_rust and net.core.qdisc_enqueue_batch.
WAYS = {"c": (0, 0), "rust": (1, 0), "batches": (1, 1)}

RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO = 0x1, 0x4, 0x8
NLM_F_REPLACE, NLM_F_CREATE = 0x100, 0x400
# An error message with attributes, and without the request that it is about.
NLM_F_ACK_TLVS = 0x200
NLMSGERR_ATTR_MSG = 1
TCA_KIND, TCA_OPTIONS = 1, 2
TC_H_ROOT = 0xFFFFFFFF
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11
HEADER = struct.Struct("=IHHII")
TCMSG = struct.Struct("=BxxxiIII")


def has_ways():
    """ Check whether the kernel has several ways to enqueue. """
    return (CORE / "xmit_llist_rust").exists()


def set_way(name):
    """ Select the code that enqueues packets to qdiscs. """
    rust, batch = WAYS[name]
    for switch, value in (("xmit_llist_rust", rust), ("qdisc_enqueue_batch", batch)):
        (CORE / switch).write_text(str(value), encoding="utf-8")
        ksft_eq((CORE / switch).read_text(encoding="utf-8").strip(), str(value), switch)


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


def _attribute(number, payload):
    length = 4 + len(payload)
    return struct.pack("=HH", length, number) + payload + bytes(-length % 4)


def _attributes(data):
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            raise ValueError("an attribute that is cut off")
        found[number & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def _request(kind, flags, ifname, more=b"", parent=TC_H_ROOT):
    """
    Send a message about a qdisc, by default the root qdisc, and return the
    body of the answer.
    """
    body = TCMSG.pack(0, socket.if_nametoindex(ifname), 0, parent, 0) + more
    message = HEADER.pack(HEADER.size + len(body), kind, flags | NLM_F_REQUEST, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(10)
        kernel.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        kernel.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        kernel.send(message)
        answer = kernel.recv(1 << 16)
    length, kind, flags, _, _ = HEADER.unpack_from(answer)
    body = answer[HEADER.size:length]
    if kind == NLMSG_ERROR and (code := -struct.unpack_from("=i", body)[0]):
        # The error's number and the header of the request come first.
        said = _attributes(body[4 + HEADER.size:]) if flags & NLM_F_ACK_TLVS else {}
        text = said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode()
        raise RefusedOptions(f"{os.strerror(code)}: {text}")
    return body


def fifo_limit(ifname):
    """ Return the limit of a root qdisc with the options of a FIFO. """
    body = _request(RTM_GETQDISC, NLM_F_ECHO, ifname)
    return struct.unpack("=I", _attributes(body[TCMSG.size:])[TCA_OPTIONS])[0]


def replace_raw(ifname, kind, options, parent=TC_H_ROOT):
    """
    Create or change a qdisc, by default the root qdisc, with raw options.
    """
    more = _attribute(TCA_KIND, kind.encode() + b"\0") + _attribute(TCA_OPTIONS, options)
    _request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, ifname, more, parent)


def limit(packets):
    """ Encode the options of a FIFO. """
    return struct.pack("=I", packets)
