# SPDX-License-Identifier: GPL-2.0
"""Ports of this machine: addresses of the two ends, and the errors on the way."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.host.ui import Failure
from testbed.selftests import ports
from testbed.selftests.kinds import FOLDER
from testbed.selftests.ports import Remote, variables

CLONE = Path(__file__).resolve().parents[4]
HW = CLONE / FOLDER


def link(name: str, *addresses: str) -> dict[str, Any]:
    """An interface as ip -json addr shows it."""
    info = []
    for text in addresses:
        address, _, length = text.partition("/")
        scope = "link" if address.startswith("fe80") else "global"
        info.append({"local": address, "prefixlen": int(length), "scope": scope})
    return {"ifname": name, "addr_info": info}


class Network:
    """Answers of ip here and at the other end."""

    def __init__(self, here: Sequence[Any], there: Sequence[Any], default: str = "eth0") -> None:
        self.here, self.there, self.default = here, there, default

    def asked(self, command: Sequence[str], what: str) -> list[Any]:
        """Stands for ports._asked()."""
        if "route" in command:
            return [{"dev": self.default}]
        return list(self.there if what.startswith("REMOTE=") else self.here)


def found(monkeypatch: pytest.MonkeyPatch, network: Network, **more: str) -> dict[str, str]:
    """The variables for eth2."""
    monkeypatch.setattr(ports, "_asked", network.asked)
    return variables("eth2", Remote.of(more.get("remote", "ssh:root@there")))


def test_addresses_in_one_subnet_are_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [link("eth2", "10.0.0.1/8", "192.0.2.1/24", "fe80::1/64", "2001:db8::1/64")]
    there = [link("eth0", "198.51.100.7/24"), link("eth5", "192.0.2.2/24", "2001:db8::2/64")]
    assert found(monkeypatch, Network(here, there)) == {
        "NETIF": "eth2", "REMOTE_TYPE": "ssh", "REMOTE_ARGS": "root@there",
        "LOCAL_V4": "192.0.2.1", "REMOTE_V4": "192.0.2.2",
        "LOCAL_V6": "2001:db8::1", "REMOTE_V6": "2001:db8::2",
    }  # fmt: skip


def test_one_version_of_ip_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network([link("eth2", "192.0.2.1/24")], [link("x", "192.0.2.9/24")])
    assert "LOCAL_V6" not in found(monkeypatch, network, remote="netns:peer")


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Network([link("eth2")], [], default="eth2"), "default route uses it"),
        (Network([link("eth2", "192.0.2.1/24")], [link("x", "192.0.3.2/24")]), "no address of it"),
        # The same address at both ends is a mistake.
        (Network([link("eth2", "192.0.2.1/24")], [link("x", "192.0.2.1/24")]), "no address of it"),
        (Network([link("eth2", "fe80::1/64")], [link("x", "fe80::2/64")]), "no address of it"),
    ],
)
def test_what_cannot_be_tested(
    monkeypatch: pytest.MonkeyPatch, network: Network, words: str
) -> None:
    with pytest.raises(Failure) as raised:
        found(monkeypatch, network)
    assert words in raised.value.on_one_line


def test_another_end_that_does_not_answer() -> None:
    with pytest.raises(Failure) as raised:
        ports._asked(Remote("netns", "no-such-namespace").command("ip", "addr"), "REMOTE=x")
    assert "REMOTE=x: " in raised.value.on_one_line
    assert "this has to work: ip netns exec no-such-namespace ip addr" in raised.value.on_one_line


def test_an_end_that_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = Remote("netns", "peer")
    monkeypatch.setattr(Remote, "command", lambda _, *words: ["test", words[-1], "=", "192.0.2.1"])
    ports.check_way_here(remote, {"LOCAL_V4": "192.0.2.1"})
    with pytest.raises(Failure) as raised:
        ports.check_way_here(remote, {"LOCAL_V4": "192.0.2.1", "LOCAL_V6": "2001:db8::1"})
    assert "ping from there to 2001:db8::1" in raised.value.on_one_line
    assert "another port in that subnet" in raised.value.on_one_line


def imported(path: Path) -> set[str]:
    """The modules that a file of the selftests imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            here = path.parent.relative_to(HW).parts
            base = here[: len(here) + 1 - node.level] if node.level else ()
            module = [*base, *(node.module or "").split(".")]
            found |= {".".join(filter(None, [*module, *more])) for one in node.names
                      for more in ([], [one.name])}  # fmt: skip
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found


def all_imported(path: Path) -> set[str]:
    """Those modules, and what they import in turn, as far as they are ours."""
    found: set[str] = set()
    rest = [path]
    while rest:
        new = imported(rest.pop()) - found
        found |= new
        for name in new:
            place = HW / name.replace(".", "/")
            rest += [one for one in (place.with_suffix(".py"), place / "__init__.py")
                     if one.exists()]  # fmt: skip
    return found


def models(path: Path) -> set[str]:
    """The modules of the modelled card that it imports."""
    return {name for name in all_imported(path) if name.startswith("lib.py.nicmodel")}


def test_a_test_of_any_port_imports_no_model() -> None:
    """Nor does the library that it uses; the others import it by name."""
    names = set(ports.programs(CLONE))
    assert {"tcp_stream.py", "vlan.py", "xmit_llist.py"} < names
    assert {name: models(HW / name) for name in names} == {name: set() for name in names}
    others = {path.name for path in HW.glob("*.py") if models(path)}
    assert {"forward.py", "faulty_device.py", "wake_up.py"} < others


def test_one_place_decides_whether_there_is_a_model() -> None:
    """The only import of it in the rest of the library, and no program has one in a function."""
    files = [*(HW / "lib/py").glob("*.py"), *HW.glob("*.py")]
    inside = {path.name for path in files if "nicmodel" in path.read_text() and not models(path)}
    assert inside == {"peer.py"}
