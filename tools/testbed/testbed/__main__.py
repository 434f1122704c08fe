# SPDX-License-Identifier: GPL-2.0
"""Entry point: python3 -m testbed VERB."""

from testbed.cli import main

raise SystemExit(main())
