# SPDX-License-Identifier: GPL-2.0
"""make run: a script of the user's in a guest."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.bench.guest import report_complaints
from testbed.boot.job import Job, print_line
from testbed.build.driver import Driver
from testbed.build.kernel import UML, Kernel
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.workshop import Built, built, chosen_driver, default_config

SELFTESTS = "tools/testing/selftests"
SELFTEST_RUNNER = "tools/testbed/guest/run_selftests.py"
# QEMU's options for the stub of gdb, which reads this kernel.
Stub = Callable[[Kernel], Sequence[str]]
# The runner's own variable among the words of a selftest.
_LIMIT = "TIME_LIMIT="


def main(env: Env) -> int:
    """make run: the script's exit code, or 99 if the kernel complained."""
    script = env.clone / env.settings.text("SCRIPT")
    line_of(selftest_of(env.clone, script), env.settings.text("ARGS"))
    return boot(env, "run", script, float(env.settings.text("TIMEOUT")))


def boot(
    env: Env, name: str, script: Path | None, timeout: float = 0.0, stub: Stub | None = None
) -> int:
    """Run a script, or a prompt, in the guest that the variables describe."""
    kept = env.out / "results/exit-code"
    if script is not None:
        kept.unlink(missing_ok=True)
    config = default_config(env)
    place = "User-Mode Linux" if config == UML else f"the VM with the {config} kernel"
    selftest = selftest_of(env.clone, script) if script else None
    with built(env, config, with_selftests=selftest is not None) as ready:
        driver, machine = chosen_driver(ready, config), ready.machine(config, name)
        job = job_of(ready, script, driver, config, timeout)
        if stub:
            job = replace(job, qemu_words=stub(ready.kernels[config]))
        if selftest is not None:
            # It needs the files installed beside it.
            job = replace(job, script=env.clone / SELFTEST_RUNNER, selftests=ready.selftests,
                          variables={"PROGRAMS": line_of(selftest, env.settings.text("ARGS"))},
                          )  # fmt: skip
        said = script.name if script else "a shell"
        say(f"==> {said} in {place}: {driver.name} driver, {job.accel}")
        # gdb reads the build, which may not change then.
        release = (lambda: None) if stub else ready.release
        if script is None:
            say(f"    {'exit ends it' if config == UML else 'Ctrl-A X ends it at once'}")
            return machine.shell(job, release)
        outcome = machine.run(job, print_line, release)
    report_complaints(outcome.complaints)
    say(*(f"broken rule: {breach}: {breach.detail}" for breach in outcome.breaches))
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


def job_of(ready: Built, script: Path | None, driver: Driver, config: str, timeout: float) -> Job:
    """The job that the variables describe."""
    settings = ready.env.settings
    return Job(
        script,
        driver.name,
        timeout,
        cpus=settings.number("CPUS"),
        card=settings.text("CARD"),
        accel=ready.accel(config),
        kernel_words=settings.text("KERNEL_ARGS").split(),
        judge=settings.switch("JUDGE"),
        ipv6=True,
        modules=driver.modules,
    )
