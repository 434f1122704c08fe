# SPDX-License-Identifier: GPL-2.0
"""Register accesses of two drivers, compared."""
