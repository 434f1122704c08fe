# SPDX-License-Identifier: GPL-2.0
"""The end of make test COVERAGE=1: from what the lanes have noted to the record."""

from __future__ import annotations

import json

from testbed.bench import record
from testbed.boot import nicmodel
from testbed.build import kernel
from testbed.coverage import functions, recorder, summary
from testbed.env import Env
from testbed.host.ui import Step, say
from testbed.source import tree


def finish(env: Env, passed: bool) -> None:
    """Say what has been entered, and write it down. The record takes a whole run that passed."""
    if not recorder.files(env.out):
        return
    build = kernel.build_folder(env, kernel.COVERAGE)
    with Step("functions of the sources: llvm-cov"):
        files = recorder.objects(build, nicmodel.output_folder(env))
        known = functions.of_files(env.llvm, files, tree.place(env) / "tree", env.clone)
    content = summary.of_run(env.out, env.clone, known)
    for part, (entered, every) in summary.sums(content).items():
        say(f"    {part}: {entered} of {every} functions entered")
    path = env.out / "coverage.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    say(f"written: {path}")
    if not env.settings.switch("RECORD"):
        return
    problems = [f"{name} has not run" for name in summary.missing(env.clone, content)]
    if problems or not passed:
        say(f"not recorded: {', '.join(problems) or 'a test failed'}")
        return
    record.keep(env, "coverage", content)
