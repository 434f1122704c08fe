# SPDX-License-Identifier: GPL-2.0

"""
Netlink messages in raw form, for requests that the library of YNL and tc do not
send: it encodes what the kernel specifies, and nothing else.
"""

import socket
import struct
from dataclasses import dataclass

HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK = 0x1, 0x4
# An error message with attributes, and without the request that it is about.
NLM_F_ACK_TLVS = 0x200
NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS = 1, 2
NLMSGERR_ATTR_POLICY, NLMSGERR_ATTR_MISS_TYPE, NLMSGERR_ATTR_MISS_NEST = 4, 5, 6
NLA_F_NESTED = 0x8000
NLA_TYPE_MASK = 0x3FFF
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11


def attribute(number, payload, length=None):
    """ Encode an attribute, if asked for with a length that is not its own. """
    length = ATTRIBUTE.size + len(payload) if length is None else length
    return ATTRIBUTE.pack(length, number) + payload + bytes(-len(payload) % 4)


def attributes(data):
    """ Decode attributes: their payloads by their numbers. """
    found = {}
    while len(data) >= ATTRIBUTE.size:
        length, number = ATTRIBUTE.unpack_from(data)
        if not ATTRIBUTE.size <= length <= len(data):
            raise ValueError("an attribute that is cut off")
        found[number & NLA_TYPE_MASK] = data[ATTRIBUTE.size:length]
        data = data[(length + 3) & ~3:]
    return found


@dataclass(frozen=True)
class Answer:
    """ The first message of an answer: an error, or a body. """

    # The number of an error, or 0.
    code: int
    # The reason for an error, if the kernel gives one.
    text: str = ""
    # Whether it points at an attribute, or at the place of one that is missing.
    points: bool = False
    body: bytes = b""


def parse(message):
    """ Parse the first message of an answer. """
    length, kind, flags, _, _ = HEADER.unpack_from(message)
    body = message[HEADER.size:length]
    if kind != NLMSG_ERROR:
        return Answer(0, body=body)
    code = -struct.unpack_from("=i", body)[0]
    # The number and the header of the request come first.
    said = attributes(body[4 + HEADER.size:]) if flags & NLM_F_ACK_TLVS else {}
    points = {NLMSGERR_ATTR_OFFS, NLMSGERR_ATTR_MISS_TYPE, NLMSGERR_ATTR_MISS_NEST,
              NLMSGERR_ATTR_POLICY} & said.keys()
    return Answer(code, said.get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode(), bool(points),
                  body)


class Kernel:
    """ A socket to the kernel, for a netlink protocol. """

    def __init__(self, protocol=socket.NETLINK_ROUTE, seconds=10):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.settimeout(seconds)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self._sequence = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """ Close the socket. """
        self._socket.close()

    def ask(self, kind, flags, body):
        """ Send a request and return the first message of the answer. """
        self._sequence += 1
        self._socket.send(HEADER.pack(HEADER.size + len(body), kind, flags | NLM_F_REQUEST,
                                      self._sequence, 0) + body)
        while True:
            message = self._socket.recv(1 << 16)
            # The rest of earlier answers comes first.
            if HEADER.unpack_from(message)[3] == self._sequence:
                return parse(message)
