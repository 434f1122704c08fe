# SPDX-License-Identifier: GPL-2.0
"""Builds the host tools with cargo and runs the NIC model."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import socket
import subprocess
import time
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.aside import Watch
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step
from testbed.settings import child_environment

_READY_WITHIN = 20.0
_CAPTURES = Path(__file__).resolve().parents[4] / "out/captures"
_TAPS = ("nic0", "nic1")
# A guest's lines to the control socket: as many of its commands run at once.
WIRES = 4


def target_folder(env: Env) -> Path:
    """Cargo's target folder. Each clone has its own, so that artifacts are not mixed up,
    and nothing unchanged is built again."""
    folder = env.cache / f"cargo-{env.toolchain_key}-{short_hash(str(env.clone))}"
    if not folder.exists():
        # Lanes of make test ask at the same time.
        with Lock(env.cache / "cargo.lock", "cargo's target folder"):
            if not folder.exists():
                _seed(env, folder)
    return folder


def _seed(env: Env, folder: Path) -> None:
    """Begin with another clone's build of third-party crates."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    found = env.cache.glob(f"cargo-{env.toolchain_key}*")
    others = [path for path in found if path.is_dir() and path.suffix != ".part"]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    if any(_copied(other, part) for other in others):
        # Our crates have relative paths: another clone's build would pass for ours.
        for manifest in (env.clone / "tools").rglob("Cargo.toml"):
            package = tomllib.loads(manifest.read_text()).get("package", {})
            for built in part.glob(f"*/.fingerprint/{package.get('name')}-*"):
                shutil.rmtree(built)
    part.mkdir(parents=True, exist_ok=True)
    # For tools/buildroot gc, to check that the clone still exists.
    (part / "clone").write_text(f"{env.clone}\n")
    part.rename(folder)


def _copied(other: Path, part: Path) -> bool:
    """Copy the builds of a folder, unless there are none or cargo works on one."""
    try:
        with ExitStack() as stack:
            for name in other.glob("*/.cargo-lock"):
                fcntl.flock(stack.enter_context(name.open("rb")), fcntl.LOCK_SH | fcntl.LOCK_NB)
                shutil.copytree(name.parent, part / name.parent.name, symlinks=True,
                                ignore=shutil.ignore_patterns("incremental"))  # fmt: skip
            return part.exists()
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        return False


def cargo_env(env: Env) -> dict[str, str]:
    """Variables for cargo: everything it writes goes to the cache."""
    return {
        "CARGO_HOME": str(env.cache / "cargo-home"),
        "CARGO_TARGET_DIR": str(target_folder(env)),
        "CARGO_TERM_COLOR": "never",
        "CARGO_NET_RETRY": "5",
        # The compiler reuses objects of a build that was interrupted: they do not link.
        "CARGO_INCREMENTAL": "0",
    }


def build(env: Env, watch: Watch | None = None) -> Path:
    """Build the host tools; returns the folder with the programs.

    `watch` is called about every second: the build runs beside another one.
    """
    log = proc.fresh(env.logs / "cargo.log")
    # The kernel's Rust code comes first, and in turn: it is not to wait.
    jobs = max(1, env.jobs // 2) if watch else env.jobs
    with Step("NIC model and host tools: cargo build", beside=watch is not None):
        proc.run(
            ["cargo", "build", "--release", "--locked", "--bins", "--lib", "--manifest-path",
             env.clone / "tools/Cargo.toml", "-j", str(jobs)],
            log, what="building the host tools", env=cargo_env(env), watch=watch,
        )  # fmt: skip
    return target_folder(env) / "release"


@dataclass
class Model:
    """A running NIC model with its sockets in a folder of its own."""

    program: Path
    folder: Path
    log: Path
    ports: int = 2
    transport: str = "vfio"
    # More words for its command line, and a command in front of it.
    words: Sequence[str] = ()
    before: Sequence[str] = ()
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def control(self) -> Path:
        """The socket of the control protocol."""
        return self.folder / "control.sock"

    def port(self, number: int) -> Path:
        """The socket of a port."""
        return self.folder / f"port{number}.sock"

    def __enter__(self) -> Model:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                # Of the build root, only the clone outlasts the run. Guests send requests, too.
                [*self.before, self.program, "serve", "--dir", self.folder,
                 "--ports", str(self.ports), "--transport", self.transport,
                 "--files", _CAPTURES, *(f"--tap={name}" for name in _TAPS), *self.words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=child_environment(RUST_BACKTRACE="1"),
                start_new_session=True,
            )  # fmt: skip
        self._child = child
        try:
            self._wait_ready(child)
        except BaseException:
            proc.stop(child)
            raise
        return self

    def _wait_ready(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        deadline = time.monotonic() + _READY_WITHIN
        text = b""
        while b"ready" not in text:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([child.stdout], [], [], max(left, 0))
            chunk = os.read(child.stdout.fileno(), 4096) if readable else b""
            if not chunk:
                raise Failure(
                    "the NIC model did not start", *proc.last_errors(self.log), f"log: {self.log}"
                )
            text += chunk

    def connect(self) -> socket.socket:
        """A line of its own to the control socket, for a guest to talk on."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.connect(str(self.control))
        except OSError as error:
            line.close()
            raise Failure(f"the NIC model does not answer on {self.control}: {error}") from error
        return line

    @property
    def pid(self) -> int | None:
        """The process that runs."""
        return self._child.pid if self._child else None

    @property
    def died(self) -> int | None:
        """The exit code if the model ended by itself."""
        return self._child.poll() if self._child else None

    def ask(self, request: dict[str, Any], timeout: float = 10.0) -> dict[str, Any]:
        """Send one request of the control protocol from the host's side."""
        with self.connect() as line:
            line.settimeout(timeout)
            try:
                line.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(line.makefile().readline())
            except (OSError, ValueError) as error:
                raise Failure(f"the NIC model gave no answer to {request}: {error}") from error
        if not isinstance(answer, dict) or answer.get("ok") is not True:
            raise Failure(f"the NIC model refused {request}: {answer}")
        return answer

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            proc.stop(self._child)
            if self._child.stdout:
                self._child.stdout.close()
