# SPDX-License-Identifier: GPL-2.0
"""make run: a script of the user's in a guest."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from testbed.bench.guest import report_complaints
from testbed.boot.job import Job, print_line
from testbed.build.driver import Driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.trace import compare
from testbed.workshop import Built, built, chosen_driver, default_config

SELFTESTS = "tools/testing/selftests"
SELFTEST_RUNNER = "tools/testbed/guest/run_selftests.py"
# The runner's own variable among the words of a selftest.
_LIMIT = "TIME_LIMIT="


def main(env: Env) -> int:
    """make run: the script's exit code, or 99 if the kernel complained; or a trace."""
    if env.settings.switch("TRACE"):
        return compare.main(env)
    script, timeout = env.clone / env.settings.text("SCRIPT"), float(env.settings.text("TIMEOUT"))
    line_of(selftest_of(env.clone, script), env.settings.text("ARGS"))
    return run_script(env, script, timeout)


def run_script(env: Env, script: Path, timeout: float) -> int:
    """Run a script in the guest that the variables describe."""
    kept = env.out / "results/exit-code"
    kept.unlink(missing_ok=True)
    config = default_config(env)
    selftest = selftest_of(env.clone, script)
    with built(env, config, with_selftests=selftest is not None) as ready:
        driver = chosen_driver(ready, config)
        machine = ready.machine(config, "run")
        job = job_of(ready, script, driver, config, timeout)
        if selftest is not None:
            line = line_of(selftest, env.settings.text("ARGS"))
            # It needs the files installed beside it.
            job = replace(job, script=env.clone / SELFTEST_RUNNER, selftests=ready.selftests,
                          variables={"PROGRAMS": line})  # fmt: skip
        say(f"==> {script.name} in {place(config)}: {driver.name} driver, {job.accel}")
        outcome = machine.run(job, print_line, ready.release)
    report_complaints(outcome.complaints)
    for breach in outcome.breaches:
        say(f"broken rule: {breach}: {breach.detail}")
    code = outcome.code or (99 if outcome.complaints else 96 if outcome.breaches else 0)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(f"{code}\n")
    say(f"    console: {machine.log}")
    say(f"exit code {code}")
    return code


def selftest_of(clone: Path, script: Path) -> str | None:
    """The name of a kernel selftest; None if the script is none."""
    folder = (clone / SELFTESTS).resolve()
    if not script.resolve().is_relative_to(folder):
        return None
    return str(script.resolve().relative_to(folder))


def line_of(selftest: str | None, words: str) -> str:
    """The line for the runner of selftests; other scripts take no words."""
    if selftest is None and words:
        raise Failure(f"ARGS={words}: the script is no selftest", "put them into a script of yours")
    try:
        limits = [word[len(_LIMIT) :] for word in shlex.split(words) if word.startswith(_LIMIT)]
    except ValueError as error:
        raise Failure(f"ARGS={words}: {error}", "quotes come in pairs") from error
    for limit in limits:
        if not limit.isdecimal():
            raise Failure(f"ARGS={words}: {_LIMIT}{limit} is no number of seconds")
    return f"{selftest} {words}".strip()


def place(config: str) -> str:
    """The name of a configuration's machine."""
    return "User-Mode Linux" if config == UML else f"the VM with the {config} kernel"


def job_of(
    ready: Built, script: Path | None, driver: Driver, config: str, timeout: float = 0.0
) -> Job:
    """The job that the variables describe."""
    settings = ready.env.settings
    words, cpus = settings.text("KERNEL_ARGS").split(), settings.number("CPUS")
    return Job(
        script,
        driver.name,
        timeout,
        cpus=cpus,
        card=settings.text("CARD"),
        accel=ready.accel(config),
        kernel_words=words,
        judge=settings.switch("JUDGE"),
        ipv6=True,
        modules=driver.modules,
    )
