# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of network drivers, run with both drivers, and their results."""
