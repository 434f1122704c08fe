# SPDX-License-Identifier: GPL-2.0
"""Tests of the random requests of setters_fuzz.py, made of a small specification."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from selftest_library import library

netlink = library("netlink")
random_requests = library("random_requests")
random_ioctls = library("random_ioctls")

GENL_HEADER = 4
MANY = 3000


def attr(name: str, value: int, kind: str, **more: Any) -> SimpleNamespace:
    """An attribute, as the kernel's library describes it."""
    yaml = {"name": name, "type": kind, **more}
    return SimpleNamespace(
        name=name,
        value=value,
        type=kind,
        yaml=yaml,
        is_multi=False,
        byte_order=None,
        display_hint=None,
        sub_type=more.get("sub-type"),
    )


def space(*attrs: SimpleNamespace) -> SimpleNamespace:
    """A set of attributes."""
    return SimpleNamespace(attrs={one.name: one for one in attrs},
                           attrs_by_val={one.value: one for one in attrs})  # fmt: skip


class Operation:
    """An operation."""

    def __init__(self, name: str, value: int, attrs: SimpleNamespace, *names: str) -> None:
        self.name, self.req_value, self.attr_set = name, value, attrs
        self.is_call, self.fixed_header = True, None
        self.yaml = {"do": {"request": {"attributes": list(names)}}}

    def __getitem__(self, key: str) -> Any:
        return self.yaml[key]


def family() -> SimpleNamespace:
    """A family with a setter of rings and one of modes."""
    header = space(attr("dev-index", 1, "u32"), attr("dev-name", 2, "string"),
                   attr("flags", 3, "u32"), attr("phy-index", 4, "u32"))  # fmt: skip
    rings = space(
        attr("header", 1, "nest", **{"nested-attributes": "header"}),
        attr("rx-max", 2, "u32"),
        attr("rx", 5, "u32"),
        attr("push", 6, "u8", enum="push"),
        attr("delay", 7, "u32", checks={"min": 10, "max": "most"}),
        attr("netns", 8, "u32"),
    )
    changed = ("header", "rx", "push", "delay", "netns")
    entries = {name: SimpleNamespace(user_value=lambda as_flags=None, number=number: number)
               for number, name in enumerate(("unknown", "off", "on"))}  # fmt: skip
    return SimpleNamespace(
        ops={
            "rings-get": Operation("rings-get", 15, rings, "header"),
            "rings-set": Operation("rings-set", 16, rings, *changed),
            "reset-act": Operation("reset-act", 17, rings, "header"),
        },
        attr_sets={"header": header},
        consts={"push": SimpleNamespace(type="enum", entries=entries), "most": {"value": 500}},
    )


def generator(seed: int = 1, settings: dict[str, Any] | None = None) -> Any:
    start = random_requests.Start(
        settings={"rings-get": {"rx": 512, "rx-max": 4096}} if settings is None else settings,
        names={"dev-index": [7], "dev-name": ["eth0"]},
        taboo=("netns",),
        index=7,
    )
    return random_requests.Generator(seed, {"ethtool": family()}, start)


def numbers(name: str, count: int = MANY) -> list[int]:
    """The values of an attribute in many requests, as the kernel sees them."""
    value = family().ops["rings-set"].attr_set.attrs[name].value
    found = []
    for request in map(generator().request, range(count)):
        if name in request.values and "cut-off" not in request.about:
            payload = netlink.attributes(request.body[GENL_HEADER:])[value]
            found.append(int.from_bytes(payload, "little"))
    return found


def test_a_request_depends_on_seed_and_number_alone() -> None:
    one, again, other = generator(), generator(), generator(seed=2)
    assert [one.request(n) for n in range(50)] == [again.request(n) for n in range(50)]
    # In any order.
    assert one.request(3) == again.request(3)
    assert [one.request(n) for n in range(50)] != [other.request(n) for n in range(50)]


def test_operations_that_change_something_are_found() -> None:
    assert generator().setters() == ["rings-set", "reset-act"]
    assert {generator().request(n).name for n in range(100)} == {"rings-set", "reset-act"}


def test_settings_that_can_be_read_are_changed_more_often() -> None:
    def share(settings: dict[str, Any] | None) -> float:
        one = generator(settings=settings)
        return sum(one.request(n).name == "rings-set" for n in range(1000)) / 1000

    assert 0.45 < share({}) < 0.55
    assert 0.78 < share(None) < 0.88


@pytest.mark.parametrize(
    ("setter", "getter"),
    [
        ("rings-set", "rings-get"),
        ("plca-set-cfg", "plca-get-cfg"),
        ("rss-create-act", "rss-get"),
        ("setlink", "getlink"),
        ("napi-set", "napi-get"),
    ],
)
def test_a_setter_has_a_getter(setter: str, getter: str) -> None:
    assert random_requests.getter_of(setter) == getter


def test_numbers_are_at_the_limits_and_around_the_settings() -> None:
    found = set(numbers("rx"))
    # The limits of the type, the present value, and its limit.
    assert {0, 1, 0xFFFFFFFF, 511, 512, 513, 1024, 256, 4095, 4096, 4097} <= found
    # Any in range.
    assert len([value for value in found if 512 < value < 4096]) > 100


def test_limits_of_the_specification_are_tried() -> None:
    assert {9, 10, 11, 499, 500, 501} <= set(numbers("delay"))


def test_enumerations_have_their_values_and_another() -> None:
    assert {0, 1, 2, 3} <= set(numbers("push"))


def test_some_attributes_are_not_of_their_kind() -> None:
    lengths = set()
    for request in map(generator().request, range(MANY)):
        if "rx=!" in request.about and "cut-off" not in request.about:
            assert "rx" not in request.values
            lengths.add(len(netlink.attributes(request.body[GENL_HEADER:])[5]))
    assert {0, 1, 2, 3, 5} <= lengths
    assert 4 not in lengths


def test_taboo_attributes_never_have_a_value() -> None:
    payloads = [netlink.attributes(request.body[GENL_HEADER:]).get(8)
                for request in map(generator().request, range(MANY))
                if "cut-off" not in request.about]  # fmt: skip
    there = [payload for payload in payloads if payload is not None]
    assert there
    assert not [payload for payload in there if len(payload) == 4]


def test_some_requests_lack_the_device_or_have_what_nobody_knows() -> None:
    told = [generator().request(n).about for n in range(MANY)]
    for word in ("header=absent", "unknown=", "cut-off"):
        assert 0 < sum(word in about for about in told) < MANY // 10, word


def test_a_request_names_the_device_by_number_or_name() -> None:
    headers = [netlink.attributes(netlink.attributes(request.body[GENL_HEADER:])[1])
               for request in map(generator().request, range(300))
               if "header=" in request.about and "absent" not in request.about
               and "cut-off" not in request.about]  # fmt: skip
    assert {header[1] for header in headers if 1 in header} >= {struct.pack("=I", 7)}
    assert {header[2] for header in headers if 2 in header} == {b"eth0\0"}


def test_ioctl_requests_are_those_of_their_number() -> None:
    rule = random_ioctls.rule("10.0.0.1", "10.0.0.2", 9, 5, 3)
    one, again = (random_ioctls.IoctlGenerator(1, {}, [rule]) for _ in range(2))
    requests = [one.request(n) for n in range(500)]
    assert requests == [again.request(n) for n in range(500)]
    lengths = {one.name: 4 * one.words for one in random_ioctls.COMMANDS}
    for request in requests:
        assert len(request.body) == lengths[request.name]
        assert struct.unpack_from("=I", request.body)[0] == request.kind
    assert {request.name for request in requests} == set(lengths)


def test_a_rule_has_its_location_and_action() -> None:
    to_queue = random_ioctls.rule("10.0.0.1", "10.0.0.2", 9, 5, 3)
    to_nowhere = random_ioctls.rule("10.0.0.1", "10.0.0.2", 9, 6, random_ioctls.RX_CLS_FLOW_DISC)
    # struct ethtool_rxnfc: the rule begins at 16; its values are at 20, its queue at 168.
    assert len(to_queue) == 192
    assert to_queue[20:28] == bytes([10, 0, 0, 2, 10, 0, 0, 1])
    assert struct.unpack_from("=QI", to_queue, 168) == (3, 5)
    assert (random_ioctls.location_of(to_queue), random_ioctls.drops(to_queue)) == (5, False)
    assert (random_ioctls.location_of(to_nowhere), random_ioctls.drops(to_nowhere)) == (6, True)
