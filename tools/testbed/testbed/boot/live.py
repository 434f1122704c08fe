# SPDX-License-Identifier: GPL-2.0
"""A persistent guest that runs programs of the selftests one by one, on request.

The host puts each request into a folder that the guest polls (guest/run_selftests.py); the
program's output comes back as the output of the guest's script.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from testbed.boot import judge
from testbed.boot.job import Job
from testbed.boot.machine import Machine
from testbed.boot.nicmodel import Model
from testbed.host.ui import Failure

_RUNNER = "tools/testbed/guest/run_selftests.py"
# The folder below /mnt/job, and the request that ends the guest.
REQUESTS = "requests"
END = "end"
# The last lines of a program may reach the console after its output.
_CONSOLE_DELAY = 10.0
# Seconds of silence after which `enough` is asked.
_LOOK = 1.0


class Live:
    """One boot. `run` may be called until the guest has died."""

    def __init__(self, machine: Machine, job: Job) -> None:
        self._machine = machine
        self._model: Model | None = None
        # Breaches that were told: how often, by port, queue and rule.
        self._told: dict[tuple[int, str | None, str], int] = {}
        self._job = replace(
            job,
            script=machine.env.clone / _RUNNER,
            kernel_words=["kunit.enable=0", *job.kernel_words],
            variables={"REQUESTS": f"/mnt/job/{REQUESTS}"},
            on_share=self._on_share,
            on_model=self._on_model,
        )
        self._share: Path | None = None
        self._shared = threading.Event()
        self._count = 0
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._seen = 0
        self.died = ""
        self._thread = threading.Thread(target=self._boot, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it can run another program."""
        return not self.died

    def run(
        self,
        request: str,
        seconds: float,
        follow: Callable[[str], None],
        enough: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """Run a program: its lines, from its begin mark to its end mark if it has one.

        The guest ends a program that takes too long; if it cannot, it is ended after `seconds`,
        or when the program says nothing and there is `enough`.
        """
        self._ask(request)
        name = request.split()[0]
        lines: list[str] = []
        deadline = time.monotonic() + seconds
        while True:
            try:
                left = deadline - time.monotonic()
                line = self._lines.get(timeout=min(max(left, 0.0), _LOOK))
            except queue.Empty:
                if left > 0 and not enough():
                    continue
                self._job.stop.set()
                line = self._lines.get()
            if line is None:
                return lines
            lines.append(line)
            follow(line)
            if line.startswith(f"# end {name} "):
                return lines

    def console(self, name: str) -> str:
        """The console since the last call, at least up to the program's end."""
        deadline = time.monotonic() + _CONSOLE_DELAY
        while True:
            text = self._machine.log.read_text(errors="replace")[self._seen :]
            if f"skbulk: end {name}" in text or self.died or time.monotonic() > deadline:
                self._seen += len(text)
                return text
            time.sleep(0.1)

    def breaches(self) -> list[judge.Breach]:
        """Rules of the datasheet that the driver has broken since the last call."""
        if not self.alive or self._model is None or self._model.died is not None:
            return []
        found = []
        for one in judge.breaches(self._model):
            key = (one.port, one.queue, one.rule)
            if one.count > self._told.get(key, 0):
                found.append(one)
            self._told[key] = one.count
        return found

    def close(self) -> tuple[str | None, str]:
        """Power off; returns the problem, if there is one, and the rest of the console."""
        if self._thread.is_alive():
            self._ask(END)
        self._thread.join()
        log = self._machine.log
        rest = log.read_text(errors="replace")[self._seen :] if log.exists() else ""
        self._seen += len(rest)
        return (None if self.died == END else self.died), rest

    def kill(self) -> None:
        """End it at once."""
        self._job.stop.set()
        self._thread.join()

    def _ask(self, request: str) -> None:
        while not self._shared.wait(0.5):
            if not self._thread.is_alive():
                return
        assert self._share is not None
        self._count += 1
        # A guest that has put something else in its place gets no request, and runs out of time.
        with suppress(OSError):
            folder = os.open(self._share / REQUESTS, os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _place(folder, str(self._count), f"{request}\n")
            finally:
                os.close(folder)

    def _on_share(self, share: Path) -> None:
        (share / REQUESTS).mkdir()
        self._share = share
        self._shared.set()

    def _on_model(self, model: Model) -> None:
        self._model = model

    def _boot(self) -> None:
        try:
            self._machine.run(self._job, self._lines.put)
            self.died = END
        except Failure as error:
            self.died = error.on_one_line
        except Exception as error:
            self.died = f"{type(error).__name__}: {error}"
        finally:
            self._lines.put(None)


def _place(folder: int, name: str, text: str) -> None:
    """A new file, whole once it is there."""
    part = os.open(".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(".part", name, src_dir_fd=folder, dst_dir_fd=folder)
