# SPDX-License-Identifier: GPL-2.0
"""Measurements: what is run, the rows that result, tables and plots."""
