# SPDX-License-Identifier: GPL-2.0
"""make shell: a prompt in a guest."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TextIO

from testbed.build.kernel import UML
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.verbs.run import job_of, place, run_script
from testbed.workshop import built, chosen_driver, default_config


def main(env: Env) -> int:
    """make shell: a prompt in the VM; without a terminal, a script of the commands."""
    if not sys.stdin.isatty():
        with tempfile.TemporaryDirectory(prefix="skbulk-shell-") as folder:
            script = Path(folder) / "commands"
            script.write_text(commands(sys.stdin))
            return run_script(env, script, float(env.settings.text("TIMEOUT")))
    config = default_config(env)
    with built(env, config) as ready:
        driver = chosen_driver(ready, config)
        way_out = "exit ends it" if config == UML else "Ctrl-A X ends it at once"
        say(f"==> a shell in {place(config)} ({way_out})")
        job = job_of(ready, None, driver, config)
        return ready.machine(config, "shell").shell(job, ready.release)


def commands(source: TextIO) -> str:
    """The commands on a standard input that is no terminal, to its end."""
    say("standard input is no terminal: reading commands from it to its end")
    text = source.read()
    if not text.strip():
        raise Failure(
            "make shell has neither a terminal nor commands to run",
            "call it from a terminal, or give it commands: echo dmesg | make shell",
            "make run SCRIPT=path runs a script",
        )
    return text
