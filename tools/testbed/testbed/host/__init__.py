# SPDX-License-Identifier: GPL-2.0
"""What the host gives: messages, processes, locks, the machine's description."""
