# SPDX-License-Identifier: GPL-2.0
"""The parts common to every kind of machine: the folder of a run, the model, the outcome."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from testbed.boot.job import Job, OnLine, Outcome, Run, fill_share, fresh_log
from testbed.boot.nicmodel import Model
from testbed.build.kernel import Kernel
from testbed.env import Env


class Machine(ABC):
    """One boot of a kernel. The folder of a run is removed at its end."""

    def __init__(self, env: Env, kernel: Kernel, tools: Path, name: str) -> None:
        self.env = env
        self.kernel = kernel
        self.tools = tools
        self.log = fresh_log(env, f"console-{name}")
        self._model_log = fresh_log(env, f"nicmodel-{name}")

    def run(
        self, job: Job, on_line: OnLine | None = None, on_copied: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Boot, run the job's script, power off.

        `on_copied` is called when the machine has its own copy of the build: from then on the
        kernel may be built again.
        """
        with self._prepared(job) as (folder, model):
            on_copied()
            outcome = self._boot(Run(self.env, job, self.log, folder, model), on_line)
            if job.on_end and model:
                job.on_end(model)
            return outcome

    def shell(self, job: Job, on_copied: Callable[[], None]) -> int:
        """Boot with the console on this terminal; returns the exit code of the program."""
        with self._prepared(job) as (folder, model):
            on_copied()
            return self._on_terminal(Run(self.env, job, self.log, folder, model))

    @abstractmethod
    def _boot(self, run: Run, on_line: OnLine | None) -> Outcome:
        """Start the machine for a script."""

    @abstractmethod
    def _on_terminal(self, run: Run) -> int:
        """Start the machine for a prompt."""

    @abstractmethod
    def _model(self, job: Job, folder: Path) -> Model:
        """The model with the transport of this kind of machine."""

    @contextmanager
    def _prepared(self, job: Job) -> Iterator[tuple[Path, Model | None]]:
        """The folder of a run, with copies of the build, and the running model."""
        with tempfile.TemporaryDirectory(prefix="skbulk-run-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            self.kernel.copy_modules(folder / "modules", job.modules)
            shutil.copy2(self.kernel.image, folder / "kernel")
            fill_share(self.env, folder / "job", job, self.kernel.config)
            if job.selftests is not None:
                job.selftests.copy(folder / "selftests")
            with self._model(job, folder / "model") if job.ports else nullcontext() as model:
                if job.on_model and model:
                    job.on_model(model)
                yield folder, model
