# SPDX-License-Identifier: GPL-2.0
"""The testbed of skbulk: builds the kernel and the NIC model, boots, measures."""
