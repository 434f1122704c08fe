# SPDX-License-Identifier: GPL-2.0
# The user's door. Everything else is in tools/; make help explains the verbs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# make exports what stands on its command line. These are the names, so that one
# that no verb takes is refused; tools/testbed/testbed/settings.py lists them all.
export SKBULK_GIVEN := $(foreach v,$(.VARIABLES),$(if $(findstring command,$(origin $v)),$v))

TESTBED := tools/buildroot testbed
CHECK := tools/buildroot check

.PHONY: help demo test bench results run shell debug deb model patches lint doctor clean distclean

help:
	@sed '1,/^HELP = /d; /^"""/,$$d' tools/testbed/testbed/settings.py

demo test bench results run shell debug deb model patches lint:
	@$(TESTBED) $@

doctor:
	@$(CHECK) $@
	@tools/testbed/doctor

clean distclean:
	@$(CHECK) $@
	@tools/buildroot $@
