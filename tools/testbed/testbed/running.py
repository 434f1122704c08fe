# SPDX-License-Identifier: GPL-2.0
"""The verbs run and shell: one VM for the user's own purposes."""

from __future__ import annotations

import os
from pathlib import Path

from testbed import boot, dmesg
from testbed.boot import Job, Outcome
from testbed.env import Env
from testbed.kernel import UML
from testbed.session import built, default_config, default_driver, default_machine
from testbed.ui import Failure, say


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


def run_script(env: Env) -> int:
    """make run: the script's exit code, or 99 if the kernel complained."""
    script, timeout = _script(env), _timeout()
    if default_machine() == UML:
        outcome, log = _run_uml(env, script, timeout)
    else:
        outcome, log = _run_qemu(env, script, timeout)
    report_complaints(outcome.complaints)
    say(f"    exit code {outcome.code}; console: {log}")
    if outcome.code == 0 and outcome.complaints:
        return 99
    return outcome.code


def _run_qemu(env: Env, script: Path, timeout: float) -> tuple[Outcome, Path]:
    driver, config = default_driver(env), default_config()
    with built(env, config) as ready:
        machine = ready.vm(config, "run")
        job = Job(script, driver, timeout=timeout, cpus=_cpus(), accel=ready.accel(config))
        say(f"==> {script.name} in the VM: {driver} driver, {config} kernel, {job.accel}")
        return machine.run(job, boot.print_line, ready.lock.release), machine.log


def _run_uml(env: Env, script: Path, timeout: float) -> tuple[Outcome, Path]:
    with built(env, UML) as ready:
        machine = ready.uml("run")
        say(f"==> {script.name} in User-Mode Linux, without ports")
        return machine.run(
            _uml_job(script, timeout), boot.print_line, ready.lock.release
        ), machine.log


def _uml_job(script: Path | None, timeout: float = 0.0) -> Job:
    words = os.environ.get("KERNEL_ARGS", "").split()
    return Job(script, "none", timeout=timeout, cpus=_cpus(), ports=0, kernel_words=words)


def run_shell(env: Env) -> int:
    """make shell: a prompt in the VM."""
    if default_machine() == UML:
        with built(env, UML) as ready:
            say("==> a shell in User-Mode Linux (exit ends it)")
            return ready.uml("shell").shell(_uml_job(None), ready.lock.release)
    driver, config = default_driver(env), default_config()
    with built(env, config) as ready:
        say("==> a shell in the VM (Ctrl-A X ends it at once)")
        job = Job(None, driver, cpus=_cpus(), accel=ready.accel(config))
        return ready.vm(config, "shell").shell(job, ready.lock.release)


def _cpus() -> int:
    text = os.environ.get("CPUS") or "2"
    if not text.isdigit() or not 1 <= int(text) <= 8:
        raise Failure(f"CPUS={text}: the VM has 1 to 8 CPUs")
    return int(text)
