# SPDX-License-Identifier: Apache-2.0
#
# All work of users and developers starts here: `make help`. The rules are in mk/build/engine.mk
# (programs that the compiler builds) and mk/run.mk (commands that run). mk/test/run runs, measures
# and counts; recipes do not.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=$(shell nproc)
endif

# The one file with every version we depend on; its lists are separated by commas.
include versions.env
comma := ,
KERNEL ?= $(KERNEL_DEFAULT)
override KERNELS := $(subst $(comma), ,$(KERNELS))

Q := $(if $(V),,@)

include mk/build/engine.mk
include mk/run.mk

.PHONY: help
help: ## show this list
	@printf 'StargateFS: make TARGET [VARIABLE=value ...]\n\nTargets:\n'
	@sed -nE 's/^([a-z][a-z0-9-]*):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | \
		expand -t 18 | sed 's/^/  /'
	@printf '\nVariables:\n'
	@sed -n 's/^##//p' $(MAKEFILE_LIST)
