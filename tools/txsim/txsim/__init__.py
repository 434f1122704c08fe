# SPDX-License-Identifier: GPL-2.0
"""A simulation of transmission: more CPUs than this machine has, one queue."""
