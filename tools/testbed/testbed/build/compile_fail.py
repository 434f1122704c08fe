# SPDX-License-Identifier: GPL-2.0
"""Compiles misuse of the abstractions against the built kernel crate.

A case is a file whose first line states the compiler's expected answer:

    //@ error: E0382 use of moved value
    //@ error: none lifetime may not live long enough

The code is followed by words that the message must contain; "none" stands for
errors without a code. All errors of a case must have that code. The misuse is
the line after a mark with the correct code, or without any if that line has to
go:

    //~ pool.allocator(cx)
    pool.alloc()

With the correct code each case must compile, which proves that it fails because
of the misuse alone.

The flags are those with which the kernel's build compiled one of its modules.
"""

import json
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.build.saved import words as saved_words
from testbed.host import proc
from testbed.host.ui import Failure

Result = tuple[str, bool, str]

_HEADER = re.compile(r"^//@ error: (?P<code>E\d{4}|none)(?: (?P<text>\S.*))?$")
_MARK = re.compile(r"^\s*//~(?: (?P<right>.*))?$")
_TIMEOUT = 300.0
# Inputs and outputs of the module whose flags are used.
_FILES = re.compile(r"--emit=|.*\.rs$|-Dwarnings$")


@dataclass(frozen=True)
class Expectation:
    """The compiler's expected error."""

    code: str | None
    text: str


def expectation(source: str, name: str) -> Expectation:
    """Reads the first line of a case."""
    first = source.split("\n", 1)[0].rstrip()
    match = _HEADER.match(first)
    if not match:
        raise Failure(
            f"{name}: the first line is {first!r}; "
            "it must be '//@ error: E0382 words of the message'"
        )
    code = None if match["code"] == "none" else match["code"]
    if code is None and not match["text"]:
        raise Failure(f"{name}: an error without code needs words of its message")
    return Expectation(code, match["text"] or "")


def put_right(source: str, name: str) -> str:
    """The case without its misuse."""
    lines = source.split("\n")
    marks = [number for number, line in enumerate(lines) if _MARK.match(line)]
    if not marks:
        raise Failure(
            f"{name}: no line is marked as the misuse; put '//~ what would be right' above it"
        )
    for number in marks:
        match = _MARK.match(lines[number])
        if number + 1 in marks or not "".join(lines[number + 1 : number + 2]).strip():
            raise Failure(f"{name}: line {number + 1} marks no line of code")
        # The number of lines stays, for those in messages.
        lines[number + 1] = (match and match["right"]) or ""
    return "\n".join(lines)


def find_command(build: Path, tree: Path) -> list[str]:
    """The rustc command of a driver that the kernel's build has compiled, without its files."""
    for path in sorted((build / "drivers/net").rglob(".*.o.cmd")):
        words = saved_words(re.sub(r"--out-dir \S+", "", path.read_text(errors="replace")))
        if "--extern" in words and "kernel" in words:
            flags = [word.replace("clippy-driver", "rustc") for word in words
                     if not _FILES.match(word)]  # fmt: skip
            return ["env", "RUSTC_BOOTSTRAP=1", f"SRCTREE={tree}", *flags]
    raise Failure(f"no driver written in Rust has been built in {build}",
                  "set CONFIG_RUST=y and CONFIG_IXGBE_RUST=m")  # fmt: skip


def judge(expected: Expectation | None, code: int, diagnostics: str) -> str | None:
    """The reason why the compiler's answer is wrong, or None. It must accept what has no misuse."""
    errors: list[tuple[str | None, str]] = []
    for line in diagnostics.splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("level") != "error":
            continue
        text = str(message.get("message", ""))
        if text.startswith(("aborting due to", "could not compile")):
            continue
        found = message.get("code")
        errors.append((found["code"] if found else None, text))

    if expected is None:
        if code == 0:
            return None
        return f"it must compile, but: {_list(errors) or diagnostics.strip()[-400:]}"
    if code == 0:
        return f"it compiles; it must be refused with {expected.code or expected.text!r}"
    if not errors:
        return f"rustc failed with status {code}: {diagnostics.strip()[-400:]}"
    if any(found != expected.code for found, _ in errors):
        return f"expected only {expected.code or 'errors without code'}, got {_list(errors)}"
    if not any(expected.text in text for _, text in errors):
        return f"no message contains {expected.text!r}: {_list(errors)}"
    return None


def _list(errors: list[tuple[str | None, str]]) -> str:
    return "; ".join(f"{code or 'no code'}: {text}" for code, text in errors)


def _check(command: list[str], build: Path, case: Path) -> Result:
    """Compiles a case with and without its misuse."""
    name = case.stem
    try:
        source = case.read_text()
        expected = expectation(source, case.name)
        why = _compile(command, build, name, source, expected)
        if why is None:
            why = _compile(command, build, name, put_right(source, case.name), None)
            why = why and f"put right, {why}"
    except Failure as error:
        why = str(error)
    return name, why is None, why or ""


def _compile(
    command: list[str], build: Path, name: str, source: str, expected: Expectation | None
) -> str | None:
    """The reason why the compiler's answer to a source is wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="skbulk-compile-fail-") as out:
        case = Path(out) / f"{name}.rs"
        case.write_text(source)
        try:
            done = proc.capture(
                [*command, "--error-format=json", "--emit=metadata",
                 f"--crate-name={re.sub(r'[^A-Za-z0-9_]', '_', name)}", f"--out-dir={out}", case],
                stderr=subprocess.PIPE, cwd=build, timeout=_TIMEOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"rustc did not end within {_TIMEOUT:.0f} s"
    return judge(expected, done.returncode, done.stderr)


def run(kernel_build_dir: Path, src_tree: Path, cases: Path) -> list[Result]:
    """Compiles every case in `cases`: its name, whether the answer was right, and if not, why."""
    files = sorted(cases.glob("*.rs"))
    command = find_command(kernel_build_dir, src_tree)
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda case: _check(command, kernel_build_dir, case), files))
