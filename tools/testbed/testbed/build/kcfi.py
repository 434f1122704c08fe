# SPDX-License-Identifier: GPL-2.0
"""Compares the types of callbacks in C and in Rust, as kCFI sees them.

With CONFIG_CFI each function has a number that is a hash of its type, and each indirect
call compares it with that of the type by which it calls. Both compilers make up the number
from their own view of the type: if these differ, the first call of a Rust function by C
code is a trap. A field of the bindings has one type in Rust, which that of a function in
the field must be, so it is enough to compare the fields: one function of the type of each
is compiled by both compilers.

This takes seconds, and a kernel that was built without CONFIG_CFI.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.build.compile_fail import find_command, module_command
from testbed.build.saved import c_command
from testbed.host import proc
from testbed.host.ui import Failure

# As in the kernel's Makefile.
_C_FLAGS = ("-fsanitize=kcfi", "-fsanitize-cfi-icall-experimental-normalize-integers")
RUST_FLAGS = (
    "-Zsanitizer=kcfi",
    "-Zsanitizer-cfi-normalize-integers",
    "-Zmerge-functions=disabled",
    # The crates below were compiled without.
    "-Cunsafe-allow-abi-mismatch=sanitizer,sanitizer-cfi-normalize-integers",
)
# Any C object of the kernel proper: for its flags.
_C_OBJECT = "kernel/.params.o.cmd"
_HEADERS = ("linux/ethtool.h", "linux/netdevice.h", "linux/pci.h", "net/netdev_queues.h")
# The structures whose fields the abstractions of network drivers fill.
STRUCTS = (
    "dev_pm_ops",
    "ethtool_ops",
    "napi_struct",
    "net_device_ops",
    "netdev_stat_ops",
    "pci_driver",
    "pci_error_handlers",
)
_TIMEOUT = 300.0
_FIELD = re.compile(r"pub (?P<name>\w+):\s*::core::option::Option<\s*unsafe extern \"C\" fn\(")
_FUNCTION = re.compile(
    r"^(?=.*!kcfi_type !(?P<node>\d+))(?:define|declare)\b.*@(?P<name>probe_\w+)\(", re.M
)
_NUMBER = re.compile(r"^!(\d+) = !\{i32 (-?\d+)\}$", re.M)


@dataclass(frozen=True)
class Field:
    """A field that points to a function: its structure, its name, and the function's type."""

    struct: str
    name: str
    parameters: str
    result: str

    @property
    def probe(self) -> str:
        """The name of the function of this type."""
        return f"probe_{self.struct}__{self.name}"


def fields(bindings: str, struct: str) -> Iterator[Field]:
    """The fields of a structure of the bindings that point to functions."""
    found = re.search(rf"^pub struct {struct} \{{\n(.*?)^\}}", bindings, re.M | re.S)
    if not found:
        raise Failure(f"the bindings have no structure {struct}")
    for match in _FIELD.finditer(found[1]):
        end = _closing(found[1], match.end())
        result = re.match(r"\s*(?:-> (.*?))?,?\s*>,", found[1][end + 1 :], re.S)
        yield Field(
            struct, match["name"], " ".join(found[1][match.end() : end].split()),
            (result and result[1]) or "()",
        )  # fmt: skip


def _closing(text: str, start: int) -> int:
    """The place of the parenthesis that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise Failure("the bindings end within a parameter list")


def used(bindings: str, sources: Iterable[Path]) -> list[Field]:
    """The fields that the sources set, by their names."""
    text = "\n".join(path.read_text(errors="replace") for path in sources)
    names = set(re.findall(r"\b(\w+)(?::|\s=) ", text))
    return [field for struct in STRUCTS for field in fields(bindings, struct)
            if field.name in names]  # fmt: skip


def c_source(of: Sequence[Field]) -> str:
    """Declares a function of the type of each field, and takes its address."""
    lines = [f"#include <{name}>" for name in _HEADERS]
    lines += [f"extern typeof(*((struct {one.struct} *)0)->{one.name}) {one.probe};" for one in of]
    lines += ["void *probes[] = {", *(f"\t(void *){one.probe}," for one in of), "};", ""]
    return "\n".join(lines)


def rust_source(of: Sequence[Field]) -> str:
    """Defines a function of the type of each field."""
    lines = ["#![no_std]", "#![allow(warnings)]", "use bindings::*;"]
    lines += [
        f'#[no_mangle] unsafe extern "C" fn {one.probe}({one.parameters}) -> {one.result} '
        "{ loop {} }"
        for one in of
    ]
    return "\n".join([*lines, ""])


def numbers(ir: str) -> dict[str, int]:
    """The number of each probe in a compiler's intermediate code."""
    values = dict(_NUMBER.findall(ir))
    return {match["name"]: int(values[match["node"]]) for match in _FUNCTION.finditer(ir)
            if match["node"] in values}  # fmt: skip


def compare(of: Sequence[Field], c: dict[str, int], rust: dict[str, int]) -> dict[str, str | None]:
    """Why a call of each field would trap, or None."""
    found: dict[str, str | None] = {}
    for one in of:
        name = f"{one.struct}.{one.name}"
        if one.probe not in c or one.probe not in rust:
            found[name] = "a compiler gave it no number"
        elif c[one.probe] != rust[one.probe]:
            found[name] = (
                f"C calls it by another type than ({one.parameters}) -> {one.result}: "
                "an enumeration needs cfi_encoding, see rust/bindgen_parameters"
            )
        else:
            found[name] = None
    return found


def check(build: Path, tree: Path, sources: Iterable[Path], folder: Path) -> dict[str, str | None]:
    """Compile the probes with both compilers, into a folder, and compare them."""
    bindings = (build / "rust/bindings/bindings_generated.rs").read_text()
    of = used(bindings, sources)
    c, rust = folder / "probes.c", folder / "probes.rs"
    c.write_text(c_source(of))
    rust.write_text(rust_source(of))
    _compile(_c_command(build, c), build, "the C probes")
    _compile(
        [*find_command(build).words(build, tree), *RUST_FLAGS, "--extern=bindings", "--extern=ffi",
         "--crate-name=probes", f"--emit=llvm-ir={rust}.ll", str(rust)], build, "the Rust probes",
    )  # fmt: skip
    return compare(
        of, numbers(Path(f"{c}.ll").read_text()), numbers(Path(f"{rust}.ll").read_text())
    )


def compile_module(build: Path, tree: Path, saved: Path, source: Path, folder: Path) -> None:
    """Compile a module written in Rust with the flags of kCFI, into a folder."""
    command = module_command(saved.read_text())
    if command is None:
        raise Failure(f"{saved} has no command of rustc")
    _compile(
        [*command.words(build, tree), *RUST_FLAGS, f"--emit=obj={folder / source.stem}.o",
         str(source)], build, source.name,
    )  # fmt: skip


def _c_command(build: Path, source: Path) -> list[str]:
    words = c_command((build / _C_OBJECT).read_text())
    if not words:
        raise Failure(f"{build / _C_OBJECT} has no command")
    return [*words[:-1], *_C_FLAGS, "-S", "-emit-llvm", "-o", f"{source}.ll", str(source)]


def _compile(command: Sequence[str], build: Path, what: str) -> None:
    done = proc.capture([*command], stderr=subprocess.PIPE, cwd=build, timeout=_TIMEOUT)
    if done.returncode != 0:
        raise Failure(f"{what} do not compile", *done.stderr.strip().splitlines()[:12])
