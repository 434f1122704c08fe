# SPDX-License-Identifier: GPL-2.0
"""Builds the tree after every topic of a series, so that git bisect works upstream."""

import pytest

from testbed.build import kernel
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step
from testbed.source import overlay, tree
from testbed.source.states import Files, States
from testbed.source.topics import Topic


@pytest.mark.suite("bisect")
def test_bisect(env: Env, results: Results) -> None:
    """One test for each topic: the User-Mode Linux kernel and its modules build."""
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
            kernel.build_step(env, work, log, step)
        results.add(name)
    except Failure as error:
        results.add(name, error.on_one_line)
