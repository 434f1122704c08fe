# SPDX-License-Identifier: GPL-2.0
"""Services of the host: messages, processes, locks, the machine's description."""
