# SPDX-License-Identifier: GPL-2.0
"""Reports of instruction counts: by function, against a record."""
