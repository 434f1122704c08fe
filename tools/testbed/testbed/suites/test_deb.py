# SPDX-License-Identifier: GPL-2.0
"""make deb, as a user has it: in plain roots, its packages on a machine, and the container."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.bench.results import Round, combine, problems
from testbed.boot import dmesg, installed
from testbed.boot.job import fresh_log
from testbed.boot.nicmodel import Model
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import plain
from testbed.host.ui import Failure, OutOfTime, Step, say
from testbed.verbs import deb
from testbed.workshop import Workshop

_FRAMES = 100_000
# Frames before those that count: the first ones after a link came up may be lost.
_WARM_UP, _TRIES = 2000, 10
# A boot and an initramfs, interpreted by QEMU, on a busy machine.
_SECONDS = 2400.0
_INSTALL = (
    "apt installs the kernel", "the kernel has an initramfs", "the boot loader has the kernel",
)  # fmt: skip
_USE = (
    "systemd has started everything", "ixgbe has both ports", "ixgbe_rust has both ports",
    "both links are up",
)  # fmt: skip
_FORWARDED = (f"{_FRAMES:,} frames forwarded intact", "no kernel complaint")
_MAKE, _DRIVERS = "make deb", "the packages have both drivers"
_RUN = "its RUN lines"
_VERBS = ("make doctor", "make demo FRAMES=1000")
_CACHE = "XDG_CACHE_HOME=/cache"
_GENERATOR, _SINK = "02:00:00:00:00:02", "02:00:00:00:01:02"


def _try(results: Results, name: str, what: Callable[[], object]) -> bool:
    """One result: whether something could be done."""
    try:
        with Step(name):
            what()
    except OutOfTime:
        raise
    except Failure as error:
        results.add(name, error.on_one_line)
        return False
    results.add(name)
    return True


@pytest.mark.suite("deb")
@pytest.mark.parametrize("program", ["bookworm", "trixie"])
def test_user(env: Env, results: Results, program: str) -> None:
    """A user without root calls make deb on a Debian that has what README.md asks for."""
    if why := plain.not_here():
        results.skip_all((_MAKE, _DRIVERS), why)
        return
    with plain.copied(env, program) as root:
        clone = root.add_user()
        _try(results, _MAKE, lambda: root.run_as_user("make deb"))
        missing = deb.missing_drivers(clone / "out/deb", deb.DRIVERS)
        results.none(_DRIVERS, [f"without {one}" for one in missing])


@pytest.mark.suite("deb")
@pytest.mark.parametrize("program", ["container"])
def test_container(env: Env, results: Results, program: str) -> None:
    """The commands of the Containerfile in a root like that of its image."""
    text = (env.clone / "Containerfile").read_text()
    if why := plain.not_here():
        results.skip_all((_RUN, *_VERBS), why)
        return
    with plain.copied(env, program) as root:
        root.copy_clone(Path("opt/skbulk"), ".git")
        steps = [rest for name, rest in plain.instructions(text) if name == "RUN"]
        if not _try(results, _RUN, lambda: root.run(_RUN, "sh", "-ec", "\n".join(steps))):
            results.skip_all(_VERBS, "the RUN lines have failed")
            return
        for verb in _VERBS:
            command = f"cd /opt/skbulk && {_CACHE} {verb}"
            _try(results, verb, lambda: root.run(verb, "sh", "-c", command))  # noqa: B023


@pytest.mark.suite("deb")
@pytest.mark.parametrize("program", ["guest"])
def test_guest(env: Env, shop: Workshop, results: Results, program: str) -> None:
    """The packages, installed in a machine; both drivers in turn in their kernel."""
    tools = shop.ready().tools
    root = plain.made(env, program)
    packages = list(deb.build(env).glob("linux-image-*.deb"))
    with tempfile.TemporaryDirectory(prefix="machine-", dir=env.cache) as place:
        with Step("a disk with Debian"):
            script = env.clone / "tools/testbed/guest/machine"
            machine = installed.make(env, root, packages, script, Path(place))
        with (
            machine.boot("install", _SECONDS, loader=False) as boot,
            Step("Debian's own kernel installs the packages"),
        ):
            done = _report(results, _INSTALL, boot)
            boot.power_off()
        if not done:
            results.skip_all((*_USE, *_FORWARDED), "the packages are not installed")
            return
        _use(env, results, machine, tools)


def _use(env: Env, results: Results, machine: installed.Machine, tools: Path) -> None:
    log = fresh_log(env, "nicmodel-machine")
    with (
        tempfile.TemporaryDirectory(prefix="skbulk-run-") as place,
        Model(tools / "nicmodel", Path(place) / "model", log) as model,
        machine.boot("machine", _SECONDS, model=model) as boot,
        Step("the installed kernel, started by the boot loader"),
    ):
        if _report(results, _USE, boot):
            results.none(_FORWARDED[0], _forward(model, boot.values("mac")))
        else:
            results.skip(_FORWARDED[0], "there are no two ports to forward between")
        bad = dmesg.complaints(boot.console.read_text(errors="replace"))
        results.none(_FORWARDED[1], bad)


def _report(results: Results, names: Sequence[str], boot: installed.Boot) -> bool:
    """The results of a boot's steps; returns whether all have passed."""
    lines = boot.lines()
    say(*(f"    {line}" for line in lines))
    for name in names:
        if f"ok {name}" in lines:
            results.add(name)
            continue
        said = [line for line in lines if line.startswith(f"not ok {name}: ")]
        results.add(name, said[0] if said else f"not reached, console: {boot.console}")
    return all(f"ok {name}" in lines for name in names)


def _forward(model: Model, macs: Sequence[str]) -> list[str]:
    """Send frames through the machine; returns what is wrong with those that came."""
    for _ in range(_TRIES):
        if _generate(model, macs, _WARM_UP)["forwarded"] == _WARM_UP:
            break
    answer = _generate(model, macs, _FRAMES)
    say(f"    {answer}")
    lost = [f"{count} lost: {why}" for why, count in answer["lost"].items() if count]
    return [*problems("rust", combine([Round("rust", answer)]), _FRAMES), *lost]


def _generate(model: Model, macs: Sequence[str], frames: int) -> dict[str, Any]:
    request = {
        "cmd": "generate", "from": 0, "to": 1, "count": frames, "size": 60, "flows": 1,
        "src_mac": _GENERATOR, "dst_mac": macs[0], "src_ip": "10.0.0.2",
        "expect_src_mac": macs[1], "expect_dst_mac": _SINK, "dst_ip": "10.0.1.2",
        "expect_ttl": 63, "window": 256, "drain_ms": 1000, "timeout_ms": 300_000,
    }  # fmt: skip
    return model.ask(request, timeout=400)
