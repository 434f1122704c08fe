# SPDX-License-Identifier: GPL-2.0
"""The verbs of the testbed, as the Makefile calls them."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from testbed.env import Env
from testbed.ui import Failure

# Verb: module, function, what it does. Imported late: doctor must run on a
# machine where little else does.
_VERBS = {
    "demo": ("demo", "demo", "forward packets with both drivers, print and write the table"),
    "test": ("testing", "test", "run everything that must pass (ONLY=suite,... selects)"),
    "run": ("running", "run_script", "run SCRIPT in the VM with the driver DRIVER"),
    "shell": ("running", "run_shell", "a prompt in the VM"),
    "bench": ("bench", "bench", "time bulk memory natively, ours against the C it wraps"),
    "patches": ("patches", "patches", "write the git am-able series into out/patches"),
    "doctor": ("doctor", "doctor", "say what this machine lacks and how to get it"),
    "lint": ("testing", "lint", "run the linters only"),
}


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="testbed",
        description="Builds skbulk's kernel and NIC model, boots them and measures.",
        epilog="Variables (KDIR, DRIVER, CONFIG, ONLY, ...) are explained by make help.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (_, _, text) in _VERBS.items():
        verbs.add_parser(name, help=text, description=text)
    chosen = parser.parse_args(arguments).verb
    # The caller may have left them ignored: an interruption must reach us.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    module, function, _ = _VERBS[chosen]
    try:
        verb = getattr(importlib.import_module(f"testbed.{module}"), function)
        return int(verb(Env.read()))
    except Failure as error:
        sys.stdout.flush()
        print(f"\nerror: {error}", file=sys.stderr)
        for hint in error.hints:
            if hint:
                print(f"  {hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: nothing is left running", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
