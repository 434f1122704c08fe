# SPDX-License-Identifier: GPL-2.0
"""Builds and tests the tree after every topic of a series, so that git bisect works upstream."""

import pytest

from testbed.boot import nicmodel
from testbed.boot.job import Job
from testbed.boot.uml import Uml
from testbed.build import kernel
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step
from testbed.source import overlay, tree
from testbed.source.states import Files, States
from testbed.source.topics import Topic
from testbed.suites.test_kunit import WORDS, parsed

_BOOT_TIME = 300.0


@pytest.mark.suite("bisect")
def test_bisect(env: Env, results: Results) -> None:
    """Two tests for each topic: the User-Mode Linux kernel and its modules build, and its KUnit
    cases pass."""
    only = env.settings.text("SERIES")
    with Lock(tree.place(env) / "lock", "this kernel tree"):
        work = kernel.prepare_tree(env)
        states = States(env.clone, work.base)
        for series in [one for one in states.series if only in ("", one)]:
            for topic, files in states.steps(series):
                # The series that it needs have steps of their own.
                if topic is not None:
                    _build(env, work, topic, files, results)


def _build(env: Env, work: tree.Tree, topic: Topic, files: Files, results: Results) -> None:
    overlay.apply(work, files)
    name = f"{topic.series}: {topic.name}"
    log = env.logs / f"bisect-{topic.name}.log"
    try:
        with Step(f"the tree after {name}") as step:
            made = kernel.build_step(env, work, log, step)
        results.add(name)
        name = f"{name}: KUnit"
        with Step(f"KUnit after {topic.name}"):
            results.none(name, _objections(env, made, f"bisect-{topic.name}-kunit"))
    except Failure as error:
        results.add(name, error.on_one_line)


def _objections(env: Env, made: kernel.Kernel, name: str) -> list[str]:
    """The cases that do not pass, and the kernel's complaints. One CPU: some series come before
    those that mend User-Mode Linux with two."""
    script = env.logs / f"{name}.sh"
    script.write_text("#!/bin/sh\n")
    job = Job(script, "none", timeout=_BOOT_TIME, ports=0, cpus=1, kernel_words=WORDS)
    outcome = Uml(env, made, nicmodel.target_folder(env), name).run(job)
    found = parsed(env, name, made, outcome)
    bad = [f"{case}: {status}" for case, status in found if status not in ("PASS", "SKIP")]
    return [*bad, *map(str, outcome.complaints)]
