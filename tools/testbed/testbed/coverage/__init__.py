# SPDX-License-Identifier: GPL-2.0
"""make test COVERAGE=1: functions of driver, abstractions and model that programs enter."""
