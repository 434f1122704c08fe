# SPDX-License-Identifier: GPL-2.0
"""The Rust driver without each of its mechanisms, and the plainest form with each one added."""
