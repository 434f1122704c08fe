# SPDX-License-Identifier: GPL-2.0
"""Building the kernel, and its compiler's messages."""
