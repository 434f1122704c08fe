# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of the insn plugin's reports."""

from __future__ import annotations

import json
import struct
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from insn import counts
from insn.symbols import panics, readable

BASE = 0xFFFFFFFF81000000
MODULE = 0xFFFFFFFFA0012000

SYSTEM_MAP = f"""\
{BASE:x} T _stext
{BASE:x} T startup
{BASE + 0x100:x} T kmem_cache_free_bulk
{BASE + 0x180:x} t napi_consume_skb
{BASE + 0x200:x} T something
{BASE + 0x200:x} T alias
{BASE + 0x300:x} T _etext
{BASE + 0x400:x} D data
"""


def elf_module(undefined: Iterable[str] = ()) -> bytes:
    """A relocatable ELF file: .text of 0x80 bytes with two functions, and .init.text."""
    names = b"\0.text\0.init.text\0.symtab\0.strtab\0"
    strings = b"\0poll\0xmit\0setup\0"
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, section, value in ((1, 1, 0), (6, 1, 0x40), (11, 2, 0)):
        symbols += struct.pack("<IBBHQQ", name, 0x12, 0, section, value, 16)
    for text in undefined:
        symbols += struct.pack("<IBBHQQ", len(strings), 0x10, 0, 0, 0, 0)
        strings += text.encode() + b"\0"
    body = names + strings + symbols
    at = 64
    table = at + len(body)

    def header(name: int, kind: int, flags: int, offset: int, size: int, link: int = 0) -> bytes:
        step = 24 if kind == 2 else 0
        return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, offset, size, link, 0, 1, step)

    headers = [
        header(0, 0, 0, 0, 0),
        header(1, 1, 6, 0, 0x80),
        header(7, 1, 6, 0, 0x80),
        header(18, 2, 0, at + len(names) + len(strings), len(symbols), 4),
        header(26, 3, 0, at + len(names), len(strings)),
        header(26, 3, 0, at, len(names)),
    ]
    start = b"\x7fELF\x02\x01\x01" + bytes(9)
    start += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 6, 5)
    return start + body + b"".join(headers)


def window(label: str, rows: list[list[int]], calls: Iterable[list[int]] = ()) -> dict[str, Any]:
    """A window as the plugin writes it."""
    sections = {".text": hex(MODULE), ".init.text": hex(MODULE + 0x1000)}
    return {
        "text": json.dumps({"label": label, "modules": {"nic": sections}}),
        "complete": True,
        "instructions": sum(row[1] * row[2] for row in rows),
        "rows": rows,
        "calls": list(calls),
    }


class PanicsTest(unittest.TestCase):
    """The panicking functions that a module calls."""

    def panics_of(self, *undefined: str) -> list[str]:
        """Those of a module with these undefined symbols."""
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(elf_module(undefined))
            return panics(Path(file.name))

    def test_a_module_that_cannot_panic_calls_nothing(self) -> None:
        self.assertEqual(self.panics_of(), [])
        harmless = "_RNvMNtNtCs9zGN6jGmP5Z_6kernel3net6skbuffNtB2_6SkBuff5alloc"
        self.assertEqual(self.panics_of("consume_skb", harmless), [])

    def test_panics_have_names(self) -> None:
        bounds = "_RNvNtCsaQ5R3vKnAXh_4core9panicking18panic_bounds_check"
        unwrap = "_RNvNtCsaQ5R3vKnAXh_4core6option13unwrap_failed"
        self.assertEqual(
            self.panics_of(bounds, "kfree", unwrap, "rust_build_error"),
            [
                "core::option::unwrap_failed",
                "core::panicking::panic_bounds_check",
                "rust_build_error",
            ],
        )


class InsnTest(unittest.TestCase):
    """Reports against small symbol tables."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.map = self.folder / "System.map"
        self.map.write_text(SYSTEM_MAP, encoding="utf-8")
        self.module = self.folder / "nic.ko"
        self.module.write_bytes(elf_module())
        self.report = self.folder / "report.json"

    def write(self, *windows: dict[str, Any]) -> None:
        """Writes a report."""
        self.report.write_text(json.dumps({"windows": windows}), encoding="utf-8")

    def analyse(self) -> list[counts.WindowCount]:
        """Reads it back."""
        return counts.analyse(self.report, self.map, {"nic": self.module})

    def test_instructions_go_to_module_kernel_and_user(self) -> None:
        rows = [
            [MODULE, 10, 3],
            [MODULE + 0x48, 2, 5],
            [BASE + 0x210, 7, 1],
            [0x400000, 4, 2],
            [MODULE + 0x5000, 1, 1],
        ]
        self.write(window("w", rows))
        (count,) = self.analyse()
        self.assertEqual(count.driver("nic"), 40)
        self.assertEqual(count.by_module, {"nic": 40, "vmlinux": 7, "[unknown]": 1})
        self.assertEqual(count.total, 56)
        by_name = {each.function: each for each in count.functions}
        self.assertEqual((by_name["poll"].instructions, by_name["poll"].entered), (30, 3))
        self.assertEqual((by_name["xmit"].instructions, by_name["xmit"].entered), (10, 0))
        self.assertEqual(count.calls("poll"), 3)

    def test_code_of_the_initialisation_is_gone(self) -> None:
        self.write(window("w", [[MODULE + 0x1000, 1, 1]]))
        self.assertEqual(self.analyse()[0].by_module, {"[unknown]": 1})

    def test_given_back_one_by_one_and_in_bulk(self) -> None:
        one = window("c", [[BASE + 0x180, 9, 5], [BASE + 0x190, 3, 5]])
        self.write(one, window("rust", [], [[64, 4]]))
        c, rust = self.analyse()
        self.assertEqual(c.consume_histogram(), {1: 5})
        self.assertEqual(rust.consume_histogram(), {64: 4})

    def test_plugin_arguments(self) -> None:
        self.assertEqual(
            counts.plugin_arguments(Path("/p,q.so"), Path("/o"), self.map),
            ["-plugin", "/p,,q.so,out=/o"],
        )
        self.map.write_text(
            SYSTEM_MAP + f"{BASE + 0x280:x} T napi_consume_skb_bulk\n", encoding="utf-8"
        )
        arguments = counts.plugin_arguments(Path("/p"), Path("/o"), self.map)[1]
        self.assertTrue(arguments.endswith(f",calls={BASE + 0x280:x}"))

    def test_rust_names(self) -> None:
        self.assertEqual(readable("poll"), "poll")
        self.assertEqual(
            readable("_RNvMs2_NtCse297zByDW5v_6kernel4pageNtB5_4Page3raw"),
            "kernel::page::Page::raw",
        )
        self.assertEqual(
            readable("_RNvXs_NtCs1_3net3bufINtB4_3BufKjf_ENtNtB8_3fmt5Write5write"),
            "net::buf::Buf::fmt::Write::write",
        )
