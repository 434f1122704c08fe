# SPDX-License-Identifier: GPL-2.0
"""make test on pytest: suites and lanes, results by name, a share of a matrix."""
