# SPDX-License-Identifier: GPL-2.0
"""Tests of what is made of the kernel's selftests."""
