# SPDX-License-Identifier: GPL-2.0

"""
Random requests to change settings, made from the specifications of netlink
families (Documentation/netlink/specs): values in range, at its limits and out
of it, attributes of a wrong length, unknown ones and absent ones.

A request depends on the seed, its number, and the settings at the start only.
One can be repeated without those before it, as far as their effects do not
matter.
"""

import random
import re
import struct
import sys
from dataclasses import dataclass, field

from .netlink import NLA_F_NESTED, attribute

# The attributes of a request that get something else than their type says, of a
# thousand; likewise requests without one that they need, with an unknown one, or
# with one that is cut off.
WRONG_KIND, LACKING, UNKNOWN, CUT_OFF = 40, 20, 20, 10
# How much more often a setter comes whose settings can be read.
READABLE = 5
GENL_HEADER = struct.Struct("=BBxx")
SCALARS = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8}
UNUSED = ("unused", "pad")
DEPTH = 4
# The most characters of a value that are shown.
SHOWN = 80


@dataclass
class Start:
    """ The device as far as it is known before the first request. """

    # The answers of the operations that read settings, by name.
    settings: dict = field(default_factory=dict)
    # The values by which requests name the device and its parts, by attribute.
    names: dict = field(default_factory=dict)
    # The attributes that setters take at all, by operation.
    takes: dict = field(default_factory=dict)
    # Attributes that would take the device away from the test: they only get
    # values of a wrong kind.
    taboo: tuple = ()
    # The index of the interface.
    index: int = 0


@dataclass(frozen=True)
class Request:
    """ A request. """

    number: int
    family: str
    name: str
    # The operation's value and the message without its header.
    kind: int
    body: bytes
    # The values as they were meant, for people.
    about: str
    # The attributes on the first level that are as their types say.
    values: dict

    def __str__(self):
        return f"{self.number}: {self.family} {self.name} {self.about}"


def is_setter(operation):
    """ Whether an operation changes something. """
    return ("do" in operation.yaml and operation.is_call
            and "get" not in operation.name.split("-") and not operation.name.startswith("get"))


def getter_of(name):
    """ Return the name of the operation that reads what a setter changes. """
    if name in ("setlink", "newlink", "dellink"):
        return "getlink"
    return re.sub(r"-(create-act|delete-act|set|act|create)\b", "-get", name)


def limits(attr, family):
    """ Return the limits of a number that the specification tells. """
    found = []
    for name in ("min", "max"):
        value = attr.yaml.get("checks", {}).get(name)
        if isinstance(value, str):
            constant = family.consts.get(value)
            value = constant["value"] if constant is not None and "value" in constant else None
        if value is not None:
            found.append(int(value))
    return found


def _u32(value):
    """ The bytes of a number. """
    return (value & 0xffffffff).to_bytes(4, sys.byteorder)


def _flatten(value):
    """ Yield the scalars of an answer. """
    if isinstance(value, dict):
        for one in value.values():
            yield from _flatten(one)
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _flatten(one)
    else:
        yield value


class Values:
    """ Values for attributes of a family, random but for their choice of interesting ones. """

    def __init__(self, rng, family, start):
        self._rng = rng
        self._family = family
        self._start = start

    def chance(self, thousandths):
        """ Whether something happens that happens so often. """
        return self._rng.randrange(1000) < thousandths

    def number(self, attr, bits, around):
        """ A number: at the limits of its type, and of the settings at the start. """
        rng = self._rng
        signed = attr.type.startswith("s")
        least = -(1 << (bits - 1)) if signed else 0
        most = least + (1 << bits) - 1
        found = [0, 1, 2, least, most, most - 1, 1 << rng.randrange(bits - signed),
                 rng.randint(least, most), rng.randrange(1000),
                 rng.randrange(1 << min(bits - 1, 16))]
        for edge in limits(attr, self._family):
            found += [edge - 1, edge, edge + 1]
        if bits == 8:
            # Most of them are switches.
            found += 4 * [0, 1]
        numbers = [value for value in around
                   if isinstance(value, int) and not isinstance(value, bool)]
        if numbers and rng.randrange(2):
            one = rng.choice(numbers)
            found = [one - 1, one, one + 1, 2 * one, one // 2, rng.randint(0, max(one, 1)),
                     rng.randint(0, max(one, 1))]
        return min(max(rng.choice(found), least), most)

    def of_enum(self, attr, around):
        """ A number of an enumeration, or next to it; or some of its flags. """
        rng, enum = self._rng, self._family.consts[attr.yaml["enum"]]
        if enum.type != "flags" and not attr.yaml.get("enum-as-flags"):
            entries = [entry.user_value() for entry in enum.entries.values()]
            return rng.choice([*entries, max(entries, default=0) + 1])
        flags = {name: entry.user_value(as_flags=True) for name, entry in enum.entries.items()}
        if rng.randrange(4) == 0:
            return sum(value for value in flags.values() if rng.randrange(3) == 0)
        # Those that are set now, but for some neighbours: of addresses and of ports there are two.
        first = rng.randrange(len(flags))
        changed = list(flags.values())[first:first + rng.randrange(3)]
        return sum(flags[name] for name in around if name in flags) ^ sum(changed)

    def scalar(self, attr, around):
        """ The bytes of a scalar and its value. """
        size = SCALARS.get(attr.type) or self._rng.choice((4, 8))
        if "enum" in attr.yaml and self._rng.randrange(4):
            value = self.of_enum(attr, around) & ((1 << size * 8) - 1)
        else:
            value = self.number(attr, size * 8, around)
        order = attr.byte_order.removesuffix("-endian") if attr.byte_order else sys.byteorder
        return (value & ((1 << size * 8) - 1)).to_bytes(size, order), value

    def text(self, around):
        """ A string: a name that is in use, none, or a long one. """
        rng = self._rng
        names = [value for value in around if isinstance(value, str) and value.isascii()]
        if names and rng.randrange(3):
            return rng.choice(names)
        length = rng.choice((0, 1, 2, 15, 16, 31, 32, 255, 300))
        return "".join(chr(rng.randrange(33, 127)) for _ in range(length))

    def binary(self, attr, around):
        """ Bytes, preferably as many as there are now, or an array. """
        rng = self._rng
        known = [len(value) for value in around if isinstance(value, bytes)]
        if attr.display_hint == "mac" and rng.randrange(3):
            # Not one of a group, most of the time.
            first = rng.randrange(256) & (0xff if rng.randrange(4) == 0 else 0xfe)
            return bytes([first]) + rng.randbytes(5)
        if attr.sub_type in SCALARS:
            table = [value for value in around if isinstance(value, int)]
            size = SCALARS[attr.sub_type]
            length = rng.choice([len(table), len(table), 0, 1, len(table) + 1, len(table) // 2])
            most = rng.choice((1, 2, 4, 16, 17, 1 << (8 * size - 1)))
            return b"".join(rng.randrange(most).to_bytes(size, sys.byteorder)
                            for _ in range(length))
        length = rng.choice([*known, *known, 0, 1, 4, 6, 8, 40, 64, rng.randrange(300)])
        return rng.randbytes(length)


class Maker:
    """ Makes the attributes of one request. """

    def __init__(self, rng, family, start):
        self._rng = rng
        self._family = family
        self._start = start
        self.values = Values(rng, family, start)

    def attribute(self, attr, now, depth=0):
        """ The bytes of an attribute, its value for people, and whether it is of its kind. """
        rng, values = self._rng, self.values
        if attr.name in self._start.taboo or values.chance(WRONG_KIND):
            return self._of_wrong_kind(attr)
        names = self._start.names.get(attr.name)
        if names and rng.randrange(20):
            now = names
            value = rng.choice(names)
            if isinstance(value, str):
                return attribute(attr.value, value.encode() + b"\0"), value, True
            return attribute(attr.value, _u32(value)), value, True
        around = list(_flatten(now))
        if attr.type in SCALARS or attr.type in ("uint", "sint"):
            data, value = values.scalar(attr, around)
        elif attr.type == "flag":
            data, value = b"", True
        elif attr.type == "string":
            value = values.text(around)
            data = value.encode() + b"\0"
        elif attr.type == "nest" and depth < DEPTH:
            space = attr.yaml["nested-attributes"]
            if space == "bitset" and rng.randrange(5):
                data, value = self._bitset(now)
            else:
                data, value = self._nest(space, now, depth)
            return attribute(attr.value | NLA_F_NESTED, data), value, True
        else:
            data = values.binary(attr, around)
            value = data.hex()
        return attribute(attr.value, data), value, True

    def _of_wrong_kind(self, attr):
        # A number of the right length would be one of the right kind, and so would a short string.
        lengths = (300,) if attr.type == "string" else (0, 1, 2, 3, 5, 7, 9, 33)
        data = self._rng.randbytes(self._rng.choice(lengths))
        number = attr.value | (NLA_F_NESTED if self._rng.randrange(4) == 0 else 0)
        return attribute(number, data), f"!{data.hex()}", False

    def _nest(self, space, now, depth):
        """ Some attributes of a set. """
        there = self._family.attr_sets[space].attrs
        data, about = b"", {}
        now = now if isinstance(now, dict) else {}
        usable = [name for name, attr in there.items() if attr.type not in UNUSED]
        for name in self.some(usable, now):
            attr = there[name]
            for _ in range(self._rng.choice((1, 1, 2, 3)) if attr.is_multi else 1):
                one, value, _ = self.attribute(attr, self.around(name, now, there), depth + 1)
                data += one
                about[name] = value
        return data, about

    def around(self, name, now, there):
        """ Settings that say something about values of an attribute: its own, and its limit. """
        most = [f"{name}-max", f"{name.removesuffix('-count')}-max", f"max-{name}", f"min-{name}"]
        found = [now[one] for one in (name, *most) if one in now and one in there]
        return found[0] if len(found) == 1 else found

    def some(self, names, now):
        """ Choose some attributes, preferably such that the device has. """
        rng = self._rng
        having = [name for name in names if name in now]
        if having and rng.randrange(5):
            names = having
        if not names:
            return []
        count = rng.choice((1, 1, 1, 2, 2, 3, len(names)))
        return rng.sample(names, min(count, len(names)))

    def _bitset(self, now):
        """ A set of bits, by their names or as a mask, with those that the device has. """
        rng = self._rng
        now = now if isinstance(now, dict) else {}
        sets = self._family.attr_sets
        there = sets["bitset"].attrs
        bits = now.get("bits", {}).get("bit", [])
        names = [bit["name"] for bit in bits if "name" in bit]
        size = now.get("size", len(names) or 32)
        data, about = b"", {}
        if rng.randrange(4) == 0:
            data += attribute(there["nomask"].value, b"")
            about["nomask"] = True
        if names and rng.randrange(3):
            each = sets["bitset-bits"].attrs["bit"]
            bit = sets["bitset-bit"].attrs
            inner = b""
            for name in rng.sample(names, rng.choice((1, 1, 2, min(3, len(names))))
                                   if len(names) > 2 else 1):
                on = bool(rng.randrange(2))
                one = attribute(bit["name"].value, name.encode() + b"\0")
                inner += attribute(each.value | NLA_F_NESTED,
                                   one + (attribute(bit["value"].value, b"") if on else b""))
                about[name] = on
            return data + attribute(there["bits"].value | NLA_F_NESTED, inner), about
        size = rng.choice((size, size, size, size + 1, 0, 1 << 20))
        words = (min(size, 2048) + 31) // 32
        about |= {"size": size}
        data += attribute(there["size"].value, _u32(size))
        for name in ("value", "mask")[:1 if about.get("nomask") and rng.randrange(5) else 2]:
            # Few bits, so that some of such sets are possible.
            number = sum(1 << rng.randrange(max(min(size, 2048), 1)) for _ in range(2))
            data += attribute(there[name].value,
                              (number % (1 << 32 * words)).to_bytes(4 * words, sys.byteorder))
            about[name] = hex(number)
        return data, about


class Generator:
    """ Makes the requests of a seed. """

    def __init__(self, seed, families, start):
        """ @families: the specifications by their names. """
        self._seed = seed
        self._families = families
        self._start = start
        self._setters = [(family, operation) for family, spec in families.items()
                         for operation in spec.ops.values() if is_setter(operation)]
        self._weights = [READABLE if start.settings.get(getter_of(operation.name)) else 1
                         for _, operation in self._setters]

    def setters(self):
        """ Return the names of all operations that requests are made for. """
        return [operation.name for _, operation in self._setters]

    def rng(self, number):
        """ Return the source of randomness for a request. """
        return random.Random(f"{self._seed} {number}")

    def request(self, number):
        """ Return a request. """
        rng = self.rng(number)
        family, operation = rng.choices(self._setters, self._weights)[0]
        return self.make(rng, number, family, operation)

    def make(self, rng, number, family, operation):
        """ Return a request for an operation. """
        spec = self._families[family]
        maker = Maker(rng, spec, self._start)
        now = self._start.settings.get(getter_of(operation.name)) or {}
        space = operation.attr_set
        wanted = [name for name in operation["do"]["request"].get("attributes", [])
                  if space.attrs[name].type not in UNUSED]
        needed = [name for name in wanted
                  if name == "header" or name in self._start.names]
        others = [name for name in wanted if name not in needed]
        chance = maker.values.chance
        others = [name for name in others
                  if name not in self._start.taboo or rng.randrange(5) == 0]
        takes = [name for name in self._start.takes.get(operation.name, ()) if name in others]
        if takes and rng.randrange(6):
            others = takes
        data, about, values = b"", {}, {}
        header, told = self._header(rng, operation)
        for name in [*needed, *maker.some(others, now)]:
            attr = space.attrs[name]
            if name in needed and chance(LACKING):
                about[name] = "absent"
                continue
            if name == "header":
                one, value = self._device(rng, spec, attr)
                kind = True
            else:
                one, value, kind = maker.attribute(attr, maker.around(name, now, space.attrs))
            data += one
            about[name] = value
            if kind:
                values[name] = value
        if chance(UNKNOWN):
            number_of = max(space.attrs_by_val) + rng.choice((1, 1, 100))
            data += attribute(number_of, rng.randbytes(4))
            about["unknown"] = number_of
        if chance(CUT_OFF):
            data += attribute(1, bytes(4), length=64)
            about["cut-off"] = True
        words = ", ".join(f"{name}={value}"[:SHOWN] for name, value in (told | about).items())
        return Request(number, family, operation.name, operation.req_value, header + data, words,
                       told | values)

    def _header(self, rng, operation):
        """ The fixed header of a message. """
        if operation.fixed_header != "ifinfomsg":
            return GENL_HEADER.pack(operation.req_value, 1), {}
        flags = change = 0
        if rng.randrange(3) == 0:
            # Flags of an interface: up, promiscuous, and any others.
            change = rng.choice((1, 1, 1 << 8, 1 << rng.randrange(20), rng.getrandbits(32)))
            flags = rng.choice((0, change, rng.getrandbits(32)))
        index = self._start.index if rng.randrange(50) else rng.choice((0, 1 << 30))
        # Without a type that takes the request for one about a bridge.
        told = {"flags": hex(flags), "change": hex(change)} if change else {}
        if index != self._start.index:
            told["index"] = index
        return struct.pack("=BxHiII", 0, 0, index, flags, change), told

    def _device(self, rng, spec, attr):
        """ The header of a request of ethtool: the device, mostly, and flags. """
        there = spec.attr_sets[attr.yaml["nested-attributes"]].attrs
        names = self._start.names
        if rng.randrange(3):
            index = rng.choice(names["dev-index"]) if rng.randrange(30) else rng.choice((0, 9999))
            data = attribute(there["dev-index"].value, _u32(index))
            about = {"dev-index": index} if index not in names["dev-index"] else {}
        else:
            name = rng.choice(names["dev-name"])
            data = attribute(there["dev-name"].value, name.encode() + b"\0")
            about = {"dev-name": name}
        if rng.randrange(6) == 0:
            flags = rng.choice((1, 2, 4, 7, 8, rng.getrandbits(32)))
            data += attribute(there["flags"].value, _u32(flags))
            about["flags"] = hex(flags)
        if rng.randrange(60) == 0:
            data += attribute(there["phy-index"].value, _u32(rng.choice((0, 1, 7))))
            about["phy-index"] = True
        return attribute(attr.value | NLA_F_NESTED, data), about
