# SPDX-License-Identifier: GPL-2.0

"""
Random requests of the ioctl interface of ethtool, which has setters that netlink
has not: rules for received packets, self-tests, tunables. The others reach the
drivers by another way, with other checks before them.

Each one is the answer of the command that reads the same settings, with some of
its words changed.
"""

import array
import fcntl
import random
import socket
import struct
import sys
from dataclasses import dataclass

from .random_requests import Request

SIOCETHTOOL = 0x8946
# Room for the longest answer.
ROOM = 1 << 16
IFREQ = struct.Struct("=16sQ16x" if sys.maxsize > 1 << 32 else "=16sI12x")

ETHTOOL_GLINKSETTINGS, ETHTOOL_SLINKSETTINGS = 0x4C, 0x4D
ETHTOOL_TEST, ETHTOOL_RESET, ETHTOOL_NWAY_RST = 0x1A, 0x34, 0x09
ETHTOOL_SRXCLSRLDEL, ETHTOOL_SRXCLSRLINS, ETHTOOL_GRXCLSRLALL = 0x31, 0x32, 0x30
ETH_TEST_FL_OFFLINE = 1
UDP_V4_FLOW = 0x02
RX_CLS_FLOW_DISC = 0xFFFFFFFFFFFFFFFF
# struct ethtool_rxnfc: the command, a type, data; then the rule with its type, values, masks, queue
# and location; then a number of rules.
RXNFC_WORDS = 48
RULE = struct.Struct("=IIQI 52s 20s 52s 20s 4x QI 4x I 4x")
# Ports of UDP over IPv4: addresses, ports, type of service.
UDP4 = struct.Struct("!4s4sHHB")


@dataclass(frozen=True)
class Command:
    """ A setter. """

    name: str
    number: int
    # The length of its structure, in words of 32 bits.
    words: int
    # The command that reads the same.
    getter: int = 0
    # The words of a request to read, or of one without a command that reads, after the number.
    first: tuple = ()


COMMANDS = (
    Command("SSET", 0x02, 11, 0x01),
    Command("SWOL", 0x06, 5, 0x05),
    Command("SMSGLVL", 0x08, 2, 0x07),
    Command("NWAY_RST", ETHTOOL_NWAY_RST, 2),
    Command("SEEPROM", 0x0C, 8, first=(0, 0, 4)),
    Command("SCOALESCE", 0x0F, 23, 0x0E),
    Command("SRINGPARAM", 0x11, 9, 0x10),
    Command("SPAUSEPARAM", 0x13, 4, 0x12),
    Command("SRXCSUM", 0x15, 2, 0x14),
    Command("STXCSUM", 0x17, 2, 0x16),
    Command("SSG", 0x19, 2, 0x18),
    Command("TEST", ETHTOOL_TEST, 4, first=(ETH_TEST_FL_OFFLINE,)),
    Command("STSO", 0x1F, 2, 0x1E),
    Command("SGSO", 0x24, 2, 0x23),
    Command("SFLAGS", 0x26, 2, 0x25),
    Command("SPFLAGS", 0x28, 2, 0x27),
    # The hash of UDP over IPv4.
    Command("SRXFH", 0x2A, RXNFC_WORDS, 0x29, first=(UDP_V4_FLOW,)),
    Command("SGRO", 0x2C, 2, 0x2B),
    Command("SRXCLSRLDEL", ETHTOOL_SRXCLSRLDEL, RXNFC_WORDS),
    Command("SRXCLSRLINS", ETHTOOL_SRXCLSRLINS, RXNFC_WORDS),
    Command("FLASHDEV", 0x33, 34),
    Command("RESET", ETHTOOL_RESET, 2, first=(1,)),
    Command("SRXFHINDIR", 0x39, 130, 0x38, first=(128,)),
    Command("SFEATURES", 0x3B, 6, first=(2,)),
    Command("SCHANNELS", 0x3D, 9, 0x3C),
    Command("SET_DUMP", 0x3E, 4, 0x3F),
    Command("SEEE", 0x45, 10, 0x44),
    Command("SRSSH", 0x47, 144, 0x46, first=(0, 128, 40)),
    Command("STUNABLE", 0x49, 6, first=(1, 3, 4)),
    # That of interrupt moderation.
    Command("PERQUEUE", 0x4B, 153, first=(0x0F, 1)),
    Command("SLINKSETTINGS", ETHTOOL_SLINKSETTINGS, 36, ETHTOOL_GLINKSETTINGS),
    Command("PHY_STUNABLE", 0x4F, 6, first=(1, 1, 1)),
    Command("SFECPARAM", 0x51, 4, 0x50),
)


def rule(local, remote, port, location, queue):
    """ A rule for packets of UDP over IPv4 from @remote to @local. """
    values = UDP4.pack(socket.inet_aton(remote), socket.inet_aton(local), 0, port, 0)
    masks = UDP4.pack(b"\xff" * 4, b"\xff" * 4, 0, 0xffff, 0)
    return RULE.pack(ETHTOOL_SRXCLSRLINS, 0, 0, UDP_V4_FLOW, values, b"", masks, b"",
                     queue, location, 0)


def location_of(request):
    """ The location of a rule, which the kernel chooses if asked to. """
    return RULE.unpack_from(request)[9]


def drops(request):
    """ Whether a rule drops packets. """
    return RULE.unpack_from(request)[8] == RX_CLS_FLOW_DISC


class Device:
    """ An interface, for ioctl commands of ethtool. """

    def __init__(self, ifname):
        self._ifname = ifname.encode()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def close(self):
        """ Close the socket. """
        self._socket.close()

    def ask(self, request):
        """ Pass a request. Return the answer, or raise OSError. """
        room = array.array("B", request + bytes(ROOM - len(request)))
        fcntl.ioctl(self._socket, SIOCETHTOOL,
                    bytearray(IFREQ.pack(self._ifname, room.buffer_info()[0])))
        return room.tobytes()

    def read(self, command):
        """ Return the settings that a command changes; None if they cannot be read. """
        words = (command.getter or command.number, *command.first)
        request = struct.pack(f"={len(words)}I", *words).ljust(4 * command.words, b"\0")
        try:
            if command.getter == ETHTOOL_GLINKSETTINGS:
                # It tells how many words its masks have, as a negative number.
                masks = -struct.unpack_from("=b", self.ask(request), 15)[0]
                request = request[:15] + struct.pack("=b", masks) + request[16:]
            if command.getter:
                request = self.ask(request)[:len(request)]
        except OSError:
            return None
        return struct.pack("=I", command.number) + request[4:]

    def locations(self):
        """ Return the locations of all rules. """
        most = 1024
        request = struct.pack("=I", ETHTOOL_GRXCLSRLALL).ljust(4 * 46, b"\0")
        answer = self.ask(request + struct.pack("=I", most))
        # Their number is behind the rule, and then there are they.
        count = struct.unpack_from("=I", answer, 4 * 46)[0]
        return list(struct.unpack_from(f"={count}I", answer, 4 * 47))

    def remove_rule(self, location):
        """ Remove a rule. """
        self.ask(RULE.pack(ETHTOOL_SRXCLSRLDEL, 0, 0, 0, b"", b"", b"", b"", 0, location, 0))


class IoctlGenerator:
    """ Makes the ioctl requests of a seed. """

    def __init__(self, seed, settings, rules):
        """
        @settings: those at the start, by the names of commands; None for a command
        that cannot read them. @rules: those that requests to insert one begin with.
        """
        self._seed = seed
        self._settings = settings
        self._rules = rules

    def request(self, number):
        """ Return a request. """
        rng = random.Random(f"ioctl {self._seed} {number}")
        # Like the generator over specifications: what the device has comes more often.
        weights = [5 if self._settings.get(one.name) else 1 for one in COMMANDS]
        command = rng.choices(COMMANDS, weights)[0]
        data = self._settings.get(command.name)
        if command.number in (ETHTOOL_SRXCLSRLINS, ETHTOOL_SRXCLSRLDEL):
            data = struct.pack("=I", command.number) + rng.choice(self._rules)[4:]
        if data is None:
            data = struct.pack(f"={len(command.first) + 1}I", command.number, *command.first)
        words = list(struct.unpack(f"={command.words}I", data.ljust(4 * command.words, b"\0")))
        about = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            where = rng.choice((rng.randrange(1, command.words),
                                rng.randrange(1, min(8, command.words))))
            words[where] = self._changed(rng, words[where])
            about.append(f"[{where}]={words[where]:#x}")
        body = struct.pack(f"={command.words}I", *words)
        return Request(number, "ioctl", command.name, command.number, body, " ".join(about), {})

    @staticmethod
    def _changed(rng, word):
        return rng.choice((
            0, 1, 2, word + 1, word - 1, 2 * word, word // 2, 0xffffffff, 1 << 31,
            word ^ 1 << rng.randrange(32), word ^ 0xff << 8 * rng.randrange(4),
            rng.randint(0, max(word, 1)), rng.randrange(1 << 16), rng.getrandbits(32),
        )) & 0xffffffff
