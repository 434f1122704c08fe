# SPDX-License-Identifier: GPL-2.0
"""The kernel's source: the tree, the overlay on it, the patch series."""
