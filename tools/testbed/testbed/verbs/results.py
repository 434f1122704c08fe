# SPDX-License-Identifier: GPL-2.0
"""make results: RESULTS.md and the generated parts of README.md, rendered from the records."""

from testbed.bench import report
from testbed.env import Env
from testbed.host.ui import say


def main(env: Env) -> int:
    """Render, and print the files that changed."""
    if not report.renew(env.clone):
        say(f"{report.RESULTS} and {report.README} are in step with the records")
    return 0
