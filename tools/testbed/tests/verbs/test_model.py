# SPDX-License-Identifier: GPL-2.0
"""make model: its printed commands work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from testbed.verbs.model import recipe, sockets


def commands(folder: Path) -> list[list[str]]:
    """The commands of the recipe as a shell reads them."""
    text = "\n".join(recipe(Path("/a clone/out/nicmodel/nicmodel"), folder))
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.startswith("  ")]
    return [shlex.split(line) for line in lines]


def test_the_model_and_its_guests_name_the_same_sockets() -> None:
    folder = Path("/it's here")
    vfio, qemu, vhost, linux, ask = commands(folder)
    for serve, words in ((vfio, []), (vhost, ["--transport", "vhost"])):
        assert serve[0] == "/a clone/out/nicmodel/nicmodel"
        assert serve[1:4] == ["serve", "--ports", "2"]
        assert serve[4:] == [*words, "--dir", str(folder)]
    devices = [json.loads(word) for word in qemu if word.startswith("{")]
    assert [device["socket"]["path"] for device in devices] == [
        f"{folder}/port0.sock", f"{folder}/port1.sock",
    ]  # fmt: skip
    assert [device["bus"] for device in devices] == ["slot0", "slot1"]
    assert f"virtio_uml.device={folder}/port1.sock:1234" in linux
    assert json.loads(ask[1]) == {"cmd": "help"}
    assert ask[-1] == f"UNIX-CONNECT:{folder}/control.sock"


def test_a_path_that_is_too_long_for_a_socket_is_not_used(tmp_path: Path) -> None:
    def env(out: Path) -> Any:
        return SimpleNamespace(out=out, clone=out)

    assert sockets(env(Path("/out"))) == Path("/out/nicmodel/sockets")
    long = sockets(env(Path("/" + "x" * 100)))
    assert len(str(long / "control.sock")) <= 107
    assert long != sockets(env(Path("/" + "y" * 100))), "another clone has another folder"
