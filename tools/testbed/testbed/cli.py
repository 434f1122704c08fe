# SPDX-License-Identifier: GPL-2.0
"""Runs one verb of the Makefile: testbed/verbs/VERB.py, function main."""

import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from testbed.env import Env
from testbed.host.claim import claimed
from testbed.host.ui import Failure
from testbed.settings import HELP


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) != 1 or words[0] in ("help", "-h", "--help"):
        sys.stdout.write(HELP)
        return 0 if len(words) == 1 else 2
    # The caller may ignore these signals, but an interruption must stop the run.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        env = Env.read(words[0])
        verb = importlib.import_module(f"testbed.verbs.{words[0]}")
        if "list" in env.settings.names("ONLY"):
            return int(verb.main(env))
        with claimed(env.out, words[0], terminal=sys.stdin.isatty()):
            return int(verb.main(env))
    except Failure as error:
        sys.stdout.flush()
        print(f"\nerror: {error}", file=sys.stderr)
        for hint in error.hints:
            if hint:
                print(f"  {hint}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if error.name != f"testbed.verbs.{words[0]}":
            raise
        print(f"make {words[0]} is not in Python: see the Makefile", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted: nothing is left running", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
