# SPDX-License-Identifier: GPL-2.0
"""A simulation of transmission: many CPUs, one queue."""
