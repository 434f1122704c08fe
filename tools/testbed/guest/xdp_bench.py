#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures XDP verdicts with both drivers, inside the guest.

With pairs in the plan, drivers take turns, and in_turn.py describes the results, in xdp.jsonl.
Without, marks for the insn plugin surround each case, and a line belongs to each window of the
plugin: the driver, the case, the frames, and those that did not do what they should.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from forward_bench import GENERATOR, SINK, TRIES, bring_up, generate, has_carrier, warm_up
from in_turn import MODULES, Bench, Figures, Side, main, processor_time, say, wait_carrier
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
def with_mtu(side: Side, mtu: int) -> Iterator[None]:
    """Longer frames at both ports of a driver, in a block."""
    try:
        for port in side.ports:
            run("ip", "link", "set", port, "mtu", str(mtu))
        yield
    finally:
        for port in side.ports:
            run("ip", "link", "set", port, "mtu", "1500")


@contextmanager
def attached(side: Side, verdict: str, frags: bool) -> Iterator[None]:
    """The program for a verdict at the first port of a driver, in a block.

    With frags, it can do with frames in several buffers.
    """
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
                keep(bpf.attach_xdp(keep(bpf.xdp_program(bpf.XDP_PASS, frags=frags)), second))
                program = bpf.redirect_map_program(keep(bpf.devmap(second)), frags)
            else:
                program = bpf.xdp_program(getattr(bpf, f"XDP_{verdict.upper()}"), frags=frags)
            keep(bpf.attach_xdp(keep(program), first))
        except OSError as error:
            raise Wrong(f"{side.driver}: {verdict}: {error}") from error
        yield


def key(cell: dict[str, Any]) -> tuple[Any, ...]:
    """All that cases have in common for which the ports stay as they are."""
    return cell["verdict"], cell.get("mtu"), cell.get("chunk")


class Xdp(Bench):
    """All verdicts of both drivers."""

    def set_up(self) -> None:
        """As many instructions as on a machine that does nothing else."""
        jit = Path("/proc/sys/net/core/bpf_jit_enable")
        if jit.exists():
            jit.write_text("1\n")
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

    def without_loss(self, side: Side, cell: dict[str, Any], work: Callable[[], int]) -> None:
        """Do work, which returns the number of frames that went wrong, until none does."""
        for _ in range(TRIES):
            wrong = work()
            if not wrong:
                return
            say(f"{side.driver}, {cell['case']}: {wrong} frames went wrong, again")
        raise Wrong(f"{side.driver}, {cell['case']}: {wrong} frames went wrong")

    def measure(self, side: Side, cell: dict[str, Any], short: bool = False) -> Figures:
        """Processor time of the guest per frame, and interrupts."""
        count = max(cell["frames"] // 10, 1000) if short else cell["frames"]
        found: dict[str, float] = {}

        def timed() -> int:
            interrupts, spent = side.totals("interrupts")["interrupts"], processor_time()
            wrong = self.frames(side, cell, count)
            found["cost"] = (processor_time() - spent) / count
            found["interrupts"] = (side.totals("interrupts")["interrupts"] - interrupts) / count
            return wrong

        self.without_loss(side, cell, timed)
        return found

    def counted(self, side: Side, cell: dict[str, Any]) -> None:
        """Count a case, in a window of its own."""
        count = cell["frames"]
        self.frames(side, cell, count // 10)
        work = partial(self.frames, side, cell, count)
        self.without_loss(side, cell, partial(self.window, side, cell["case"], count, work))

    def window(self, side: Side, case: str, count: int, work: Callable[[], int]) -> int:
        """Do work between marks."""
        modules = [MODULES[side.driver]] + [ROUTER.name] * ROUTER.exists()
        words = [word for name in modules for word in ("--module", name)]
        run("insn-mark", "on", f"{side.driver} {case}", *words)
        wrong = work()
        run("insn-mark", "off")
        self.note(driver=side.driver, case=case, frames=count, wrong=wrong)
        return wrong

    def group(self, cells: list[dict[str, Any]], sides: list[Side]) -> None:
        """Measure cases of a verdict with these drivers."""
        verdict, mtu, chunk = key(cells[0])
        with ExitStack() as stack:
            for side in sides:
                if mtu:
                    stack.enter_context(with_mtu(side, mtu))
                stack.enter_context(reflecting(side, chunk) if chunk else
                                    attached(side, verdict, frags=bool(mtu)))  # fmt: skip
            # A program makes the C driver take its link down.
            wait_carrier((port, partial(has_carrier, port))
                         for side in sides for port in side.ports)  # fmt: skip
            for side in sides:
                if verdict in ("none", "pass"):
                    warm_up(side)
            for cell in cells:
                say(f"{', '.join(side.driver for side in sides)}: {cell['case']}")
                if "pairs" not in self.plan:
                    self.counted(sides[0], cell)
                    continue
                self.attempt(self.warm_up, cell, 0)
                for pair in range(1, self.plan["pairs"] + 1):
                    self.attempt(self.compare, cell, pair)

    def run(self) -> None:
        """Go through verdicts; one that fails takes no other one with it."""
        wait_carrier((port, partial(has_carrier, port)) for side in self.sides
                     for port in side.ports)  # fmt: skip
        together = [self.sides]
        if "pairs" not in self.plan:
            together = [[side] for side in self.sides]
            for side in self.sides:
                # The work of the marks themselves.
                self.window(side, "nothing", 0, self.nothing)
        for _, group in groupby(self.plan["cells"], key):
            cells = list(group)
            for sides in together:
                sides = [side for side in self.sides_of(cells[0]) if side in sides]
                try:
                    if sides:
                        self.group(cells, sides)
                except Wrong as error:
                    say(f"failed: {error}")
                    self.failed.add(str(error))
                    self.note(case=cells[0]["verdict"], failed=str(error), pair=0)

    def nothing(self) -> int:
        """Wait as a case does."""
        time.sleep(DRAIN / 1000)
        return 0


if __name__ == "__main__":
    sys.exit(main(Xdp, "xdp.jsonl"))
