#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts the instructions of XDP verdicts with both drivers, inside the guest.

Marks for the insn plugin surround each case. A line of the results, in xdp.jsonl, belongs to each
window of the plugin: the driver, the case, the frames, and those that did not do what they should.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from forward_bench import GENERATOR, SINK, TRIES, bring_up, generate, has_carrier, warm_up
from in_turn import MODULES, Bench, Side, main, say, wait_carrier
from senders import Wrong, run

_LIBRARY = "tools/testing/selftests/drivers/net/hw/lib/py"
# Milliseconds after the last frame, in which the driver works for some.
DRAIN = 300
ROUTER = Path("/sys/module/rust_xdp_router")


def _library(name: str) -> ModuleType:
    """A module of the selftests, which needs nothing of their library."""
    path = Path(__file__).parents[3] / _LIBRARY / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Wrong(f"there is no {path}")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


bpf = _library("bpf")
af_xdp = _library("af_xdp")


def _index(port: str) -> int:
    return int(Path(f"/sys/class/net/{port}/ifindex").read_text())


@contextmanager
def reflecting(side: Side, chunk: int) -> Iterator[None]:
    """A socket that sends back what the first port receives, without copies, in a block."""
    port = _index(side.ports[0])
    with ExitStack() as stack:
        try:
            table = bpf.socket_map(1)
            stack.callback(os.close, table)
            program = bpf.socket_program(table, bpf.XDP_DROP)
            stack.callback(os.close, program)
            stack.callback(os.close, bpf.attach_xdp(program, port))
            sock = af_xdp.XdpSocket(port, 0, af_xdp.ZEROCOPY | af_xdp.NEED_WAKEUP, chunk)
            stack.callback(sock.close)
            bpf.put_socket(table, 0, sock)
        except OSError as error:
            raise Wrong(f"{side.driver}: socket: {error}") from error
        stack.callback(af_xdp.Reflector([sock]).stop)
        yield


@contextmanager
def routed(side: Side) -> Iterator[None]:
    """The sample that forwards frames without a program, in a block."""
    first, second = (_index(port) for port in side.ports)
    run("modprobe", ROUTER.name, f"first={first}", f"second={second}")
    try:
        Path(f"/sys/kernel/debug/{ROUTER.name}/routes").write_text(
            f"{side.subnet}.1.0/24 1 {SINK}\n{side.subnet}.0.0/24 0 {GENERATOR}\n"
        )
        yield
    finally:
        run("rmmod", ROUTER.name)


@contextmanager
def attached(side: Side, verdict: str) -> Iterator[None]:
    """The program for a verdict at the first port of a driver, in a block."""
    if verdict == "none":
        yield
        return
    if verdict == "router":
        with routed(side):
            yield
        return
    with ExitStack() as stack:

        def keep(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        first, second = (_index(port) for port in side.ports)
        try:
            if verdict == "redirect":
                # The C driver sends such frames only with a program of its own.
                keep(bpf.attach_xdp(keep(bpf.xdp_program(bpf.XDP_PASS)), second))
                program = bpf.redirect_map_program(keep(bpf.devmap(second)))
            else:
                program = bpf.xdp_program(getattr(bpf, f"XDP_{verdict.upper()}"))
            keep(bpf.attach_xdp(keep(program), first))
        except OSError as error:
            raise Wrong(f"{side.driver}: {verdict}: {error}") from error
        yield


class Xdp(Bench):
    """All verdicts of both drivers."""

    def set_up(self) -> None:
        """As many instructions as on a machine that does nothing else."""
        Path("/proc/sys/net/core/bpf_jit_enable").write_text("1\n")
        run("sysctl", "-q", "net.ipv4.ip_forward=1")
        for side in self.sides:
            bring_up(side)
            for port in side.ports:
                run("ethtool", "-K", port, "gro", "on")

    def frames(self, side: Side, cell: dict[str, Any], count: int) -> int:
        """Send so many frames. Returns how many of them did not do what they should."""
        send = partial(generate, side, count, size=cell["size"], drain_ms=DRAIN,
                       window=cell["window"] or count)  # fmt: skip
        raw = {"expect_ttl": 64, "expect_src_mac": GENERATOR, "expect_dst_mac": side.mac(0)}
        match cell["verdict"]:
            case "drop":
                answer = send()
                return int(answer["forwarded"]) + sum(
                    lost for why, lost in answer["lost"].items() if why != "in_guest"
                )
            case "tx" | "xsk":
                answer = send(to=side.first, **raw)
            case "redirect":
                answer = send(**raw)
            case _:
                answer = send()
        return count - int(answer["forwarded"])

    def counted(self, side: Side, cell: dict[str, Any]) -> None:
        """Count a case, in a window of its own."""
        count = cell["frames"]
        self.frames(side, cell, count // 10)
        for _ in range(TRIES):
            wrong = self.window(side, cell["case"], count, partial(self.frames, side, cell, count))
            if not wrong:
                return
            say(f"{side.driver}, {cell['case']}: {wrong} frames went wrong, again")
        raise Wrong(f"{side.driver}, {cell['case']}: {wrong} frames went wrong")

    def window(self, side: Side, case: str, count: int, work: Callable[[], int]) -> int:
        """Do work between marks."""
        modules = [MODULES[side.driver]] + [ROUTER.name] * ROUTER.exists()
        words = [word for name in modules for word in ("--module", name)]
        run("insn-mark", "on", f"{side.driver} {case}", *words)
        wrong = work()
        run("insn-mark", "off")
        self.note(driver=side.driver, case=case, frames=count, wrong=wrong)
        return wrong

    def verdict(self, group: dict[str, Any], side: Side) -> None:
        """Count the cases of a verdict."""
        verdict, chunk = group["verdict"], group.get("chunk")
        with reflecting(side, chunk) if chunk else attached(side, verdict):
            # A program makes the C driver take its link down.
            wait_carrier((port, partial(has_carrier, port)) for port in side.ports)
            if verdict in ("none", "pass"):
                warm_up(side)
            for cell in group["cells"]:
                say(f"{side.driver}: {cell['case']}")
                self.counted(side, {"verdict": verdict, **cell})

    def run(self) -> None:
        """Go through verdicts and drivers; a verdict that fails takes no other one with it."""
        wait_carrier((port, partial(has_carrier, port)) for side in self.sides
                     for port in side.ports)  # fmt: skip
        for side in self.sides:
            # The work of the marks themselves.
            self.window(side, "nothing", 0, self.nothing)
        for group in self.plan["groups"]:
            for side in self.sides:
                if side.driver not in group["drivers"]:
                    continue
                try:
                    self.verdict(group, side)
                except Wrong as error:
                    say(f"failed: {error}")
                    self.failed.add(f"{side.driver} {group['verdict']}")
                    self.note(driver=side.driver, case=group["verdict"], failed=str(error))

    def nothing(self) -> int:
        """Wait as a case does."""
        time.sleep(DRAIN / 1000)
        return 0


if __name__ == "__main__":
    sys.exit(main(Xdp, "xdp.jsonl"))
