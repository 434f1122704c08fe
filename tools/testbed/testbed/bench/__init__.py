# SPDX-License-Identifier: GPL-2.0
"""Measurements: benchmarks, their rows, tables and plots."""
