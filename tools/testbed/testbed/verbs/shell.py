# SPDX-License-Identifier: GPL-2.0
"""make shell: a prompt in a guest."""

import sys
import tempfile
from pathlib import Path
from typing import TextIO

from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.verbs.run import boot


def main(env: Env) -> int:
    """make shell: a prompt in the VM; without a terminal, a script of the commands."""
    if not sys.stdin.isatty():
        with tempfile.TemporaryDirectory(prefix="skbulk-shell-") as folder:
            script = Path(folder) / "commands"
            script.write_text(commands(sys.stdin))
            return boot(env, "run", script, float(env.settings.text("TIMEOUT")))
    return boot(env, "shell", None)


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
