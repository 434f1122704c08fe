# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: many CPUs transmit through one queue, measured and simulated."""
