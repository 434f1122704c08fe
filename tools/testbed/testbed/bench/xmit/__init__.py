# SPDX-License-Identifier: GPL-2.0
"""Transmission through one queue by many CPUs, measured."""
