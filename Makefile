# SPDX-License-Identifier: GPL-2.0
# The user's door. Everything else is in tools/; make help explains the verbs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Variables that a verb may take, from the command line or the environment.
export SCRIPT DRIVER CONFIG KDIR ONLY FRAMES CPUS JOBS TIMEOUT OVERLAY ACCEL MACHINE KERNEL_ARGS
export ROUNDS CASES RECORD SKB_POOL XMIT_LLIST SKBULK_HOST SKBULK_MIRROR

ENTER := tools/buildroot run
TESTBED := $(ENTER) env PYTHONPATH=tools/testbed PYTHONDONTWRITEBYTECODE=1 python3 -m testbed

.PHONY: help demo test bench run shell patches doctor lint clean distclean

help:
	@cat tools/testbed/help.txt

demo test bench run shell patches lint:
	@$(TESTBED) $@

doctor:
	@tools/testbed/doctor

clean:
	@tools/buildroot clean

distclean:
	@tools/buildroot distclean
