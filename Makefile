# SPDX-License-Identifier: GPL-2.0
# The user's entry point. The rest is in tools/; make help explains the verbs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# make exports the variables of its command line. Their names are passed on so that
# unknown ones are refused; tools/testbed/testbed/help.txt lists all variables.
export SKBULK_GIVEN := $(foreach v,$(.VARIABLES),$(if $(findstring command,$(origin $v)),$v))

# All verbs are checked before the first one begins, and run one after the other.
export SKBULK_GOALS := $(MAKECMDGOALS)
.NOTPARALLEL:

TESTBED := tools/buildroot testbed
CHECK := tools/buildroot check

.PHONY: help demo test bench results run shell debug fuzz deb model patches lint doctor clean distclean

help:
	@cat tools/testbed/testbed/help.txt

demo test bench results run shell debug fuzz deb model patches lint:
	@$(TESTBED) $@

doctor:
	@$(CHECK) $@
	@tools/testbed/doctor

clean distclean:
	@$(CHECK) $@
	@tools/buildroot $@

# Names the verbs that there are.
.DEFAULT:
	@$(CHECK) $@
