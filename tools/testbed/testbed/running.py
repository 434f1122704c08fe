# SPDX-License-Identifier: GPL-2.0
"""The verbs run and shell: one VM for the user's own purposes."""

from __future__ import annotations

import os
from pathlib import Path

from testbed import boot, dmesg
from testbed.boot import Job, Outcome
from testbed.env import Env
from testbed.kernel import UML
from testbed.session import Built, built, default_config, default_driver
from testbed.ui import Failure, Step, say
from testbed.uml import Uml


def _timeout() -> float:
    text = os.environ.get("TIMEOUT") or "600"
    try:
        value = float(text)
    except ValueError as error:
        raise Failure(f"TIMEOUT={text} is not a number of seconds") from error
    if value <= 0:
        raise Failure(f"TIMEOUT={text} must be more than 0 seconds")
    return value


def _script(env: Env) -> Path:
    text = os.environ.get("SCRIPT", "")
    if not text:
        raise Failure(
            "no script to run",
            "make run SCRIPT=path [DRIVER=rust|c] [CONFIG=perf|debug]",
            "make shell gives a prompt instead",
        )
    path = env.clone / text
    if not path.is_file():
        raise Failure(f"SCRIPT={text} is not a file")
    return path


def report_complaints(found: list[dmesg.Complaint]) -> None:
    """Tell what the kernel complained about."""
    for one in found:
        say(f"kernel complaint: {one}")


def run_bench(machine: Uml, job: Job, title: str, prefix: str) -> Outcome:
    """Run a job that measures. What it says behind `prefix` is shown as progress."""
    with Step(title) as step:

        def follow(line: str) -> None:
            step.detail = line.removeprefix(prefix)

        outcome = machine.run(job, follow)
        step.detail = ""
    report_complaints(outcome.complaints)
    if outcome.code != 0:
        raise Failure(
            f"{title}: failed",
            *outcome.output.strip().splitlines()[-6:],
            f"console: {machine.log}",
        )
    return outcome


def run_script(env: Env) -> int:
    """make run: the script's exit code, or 99 if the kernel complained."""
    script, timeout = _script(env), _timeout()
    driver, config = default_driver(env), default_config()
    with built(env, config) as ready:
        machine = ready.machine(config, "run")
        job = _job(ready, script, driver, config, timeout)
        say(f"==> {script.name} in {_place(config)}: {driver} driver, {job.accel}")
        outcome = machine.run(job, boot.print_line, ready.lock.release)
    report_complaints(outcome.complaints)
    say(f"    exit code {outcome.code}; console: {machine.log}")
    if outcome.code == 0 and outcome.complaints:
        return 99
    return outcome.code


def run_shell(env: Env) -> int:
    """make shell: a prompt in the VM."""
    driver, config = default_driver(env), default_config()
    with built(env, config) as ready:
        way_out = "exit ends it" if config == UML else "Ctrl-A X ends it at once"
        say(f"==> a shell in {_place(config)} ({way_out})")
        job = _job(ready, None, driver, config)
        return ready.machine(config, "shell").shell(job, ready.lock.release)


def _place(config: str) -> str:
    return "User-Mode Linux" if config == UML else f"the VM with the {config} kernel"


def _job(ready: Built, script: Path | None, driver: str, config: str, timeout: float = 0.0) -> Job:
    words = os.environ.get("KERNEL_ARGS", "").split()
    accel = ready.accel(config)
    return Job(script, driver, timeout, cpus=_cpus(), accel=accel, kernel_words=words)


def _cpus() -> int:
    text = os.environ.get("CPUS") or "2"
    if not text.isdigit() or not 1 <= int(text) <= 8:
        raise Failure(f"CPUS={text}: the VM has 1 to 8 CPUs")
    return int(text)
