# SPDX-License-Identifier: GPL-2.0
"""Creates or changes a root qdisc with raw options, for kinds that tc does not know, and shows what
the kernel says; or prints the limit of the root qdisc, if it has the options of a FIFO."""

from __future__ import annotations

import os
import socket
import struct
import sys

RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO = 0x1, 0x4, 0x8
NLM_F_REPLACE, NLM_F_CREATE = 0x100, 0x400
# An error message with attributes, and without the request that it is about.
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
TCA_KIND, TCA_OPTIONS = 1, 2
TC_H_ROOT = 0xFFFFFFFF
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11

HEADER = struct.Struct("=IHHII")
TCMSG = struct.Struct("=BxxxiIII")


class Refused(Exception):
    """The kernel answered with an error."""


def attribute(number: int, payload: bytes) -> bytes:
    """A netlink attribute, padded."""
    length = 4 + len(payload)
    return struct.pack("=HH", length, number) + payload + bytes(-length % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in `data`, by their numbers."""
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            raise ValueError("an attribute that is cut off")
        found[number & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def request(kind: int, flags: int, interface: str, more: bytes = b"") -> bytes:
    """Sends a message about the root qdisc of an interface; returns what is behind the header of
    the answer."""
    body = TCMSG.pack(0, socket.if_nametoindex(interface), 0, TC_H_ROOT, 0) + more
    message = HEADER.pack(HEADER.size + len(body), kind, flags | NLM_F_REQUEST, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(10)
        kernel.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        kernel.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        kernel.send(message)
        answer = kernel.recv(1 << 16)
    length, kind, flags, _, _ = HEADER.unpack_from(answer)
    body = answer[HEADER.size : length]
    if kind == NLMSG_ERROR and (code := -struct.unpack_from("=i", body)[0]):
        # The error's number and the header of the request come first.
        said = attributes(body[4 + HEADER.size :]) if flags & NLM_F_ACK_TLVS else {}
        text = said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode()
        raise Refused(f"{os.strerror(code)}: {text}")
    return body


def limit(interface: str) -> int:
    """The limit that the root qdisc says it has."""
    body = request(RTM_GETQDISC, NLM_F_ECHO, interface)
    options = attributes(body[TCMSG.size :])[TCA_OPTIONS]
    return int(struct.unpack("=I", options)[0])


def main(arguments: list[str]) -> None:
    """See the usage below."""
    match arguments:
        case ["limit", interface]:
            print(limit(interface))
        case ["replace", interface, kind, options]:
            more = attribute(TCA_KIND, kind.encode() + b"\0")
            more += attribute(TCA_OPTIONS, bytes.fromhex(options))
            request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, interface, more)
        case ["replace", interface, kind, "limit", packets]:
            main(["replace", interface, kind, struct.pack("=I", int(packets)).hex()])
        case _:
            sys.exit("usage: qdisc_options.py limit DEV | replace DEV KIND (HEX | limit PACKETS)")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as why:
        sys.exit(str(why))
