# SPDX-License-Identifier: Apache-2.0
#
# All work of users and developers starts here: `make help`. mk/README.md lists the files behind the
# targets. A target without a description is a step of other targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=$(shell nproc)
endif

# versions.env has every version on which the project depends; commas separate the items of its
# lists.
include versions.env
comma := ,
KERNEL ?= $(KERNEL_DEFAULT)
override KERNELS := $(subst $(comma), ,$(KERNELS))

Q := $(if $(V),,@)

include mk/build/engine.mk
include mk/build/parts.mk

##  PART="tools lib"          of `make build`, also csi, csi-tests, kubectl, module, kvm-modules
##                            (SERIES=), tune, vsched, test-programs, corpus; of `make install`:
##                            tools, kubectl, module, tune, vsched
##  SUITE="NAME ..."          suites of `make test`, `e2e` and `fuzz`, benchmarks of `make bench`
##  ONLY="PATTERN ..."        only the cases, or fuzzers, whose names match one of these
##  KERNEL=6.12               for PART=module, `make demo` and `make bench`
##  KERNELS="6.1 6.12 7.2"    for suites on real kernels
##  MAPS="walk splice shadow" data paths for these suites
##  SAN=asan                  builds in build/asan; also tsan, cov, rec, lines, fuzz, hostile
##  STATIC=1                  links the tools statically
##  DESTDIR= PREFIX=          for `make install` (/usr/local)
##  VERSION=                  for `make image`
##  KUBEVIRT=1.9              for `make e2e`, instead of 1.8
##  SLOW=3                    makes the limits of tests three times as long
##  FORCE=1                   makes `make test-all` run every case
##  V=1                       shows the commands

.PHONY: help build install demo demo-k8s test test-quick test-all e2e bench fuzz lint
.PHONY: image chart deb release clean

# $(call known,VARIABLE,WORDS): refuses other words in the variable, with one line.
known = $(if $(filter-out $(2),$($(1))),$(error $(1)=$(firstword $(filter-out $(2),$($(1)))) \
	is unknown: choose from $(2)))
# $(call chosen,TARGET,VARIABLE,WORDS,DEFAULT): the variable's words, if TARGET is to be made.
chosen = $(if $(filter $(1),$(MAKECMDGOALS)),$(call known,$(2),$(3))$(or $($(2)),$(4)))

parts := tools lib csi csi-tests kubectl module kvm-modules tune vsched test-programs corpus
build: $(call chosen,build,PART,$(parts),tools lib) ## tools and libstargate (PART=: other parts)
installs := tools kubectl module tune vsched
install: $(patsubst %,install-%,$(call chosen,install,PART,$(installs),tools)) ## \
	install tools, man pages, libstargate (PART=module by DKMS, kubectl, tune, vsched)

demo: ## a host and two VMs share one volume; one VM is killed
	@mk/tools/deps native
	@KERNEL=$(KERNEL) e2e/demo
demo-k8s: ## a Kubernetes cluster on this machine, with two pods on one claim (KEEP=1 keeps it)
	@mk/tools/deps native csi image cluster
	@e2e/cluster/demo

# mk/test/run checks the names of suites.
test-run := KERNELS="$(KERNELS)" mk/test/run
test: ## one proof of each subject, in a quarter of an hour, as in CI (SUITE=, ONLY=)
	@$(test-run) test $(SUITE)
test-quick:
	@$(test-run) test-quick
test-all: ## everything, except cases that passed on the same inputs: hours
	@$(test-run) test-all
e2e: ## clusters on this machine, KubeVirt (SUITE=)
	@$(test-run) e2e $(or $(SUITE),k8s)
lint: ## all checks of the sources without running them: a minute
	@$(test-run) test lint

bench: ## benchmarks; they write docs/performance (SUITE=)
	@mk/tools/deps runner
	@KERNEL=$(KERNEL) mk/test/bench $(or $(SUITE),peers)

fuzz-suites := $(call chosen,fuzz,SUITE,engine driver hostile,engine driver)
# To run one fuzzer, make compiles only that one. A fuzzer in Go needs no clang.
fuzz-c := $(if $(filter engine,$(fuzz-suites)),$(if $(ONLY),$(shell set -f; \
	for name in $(patsubst build/fuzz/bin/%_fuzz,%,$(fuzz-bins)); do for one in $(ONLY); do \
	[[ $$name != $$one ]] || { echo build/fuzz/bin/$${name}_fuzz; break; }; \
	done; done),$(fuzz-bins)))
# Prints FOLDER:FuzzNAME for each fuzzer of the CSI driver.
fuzz-go := $(if $(filter driver,$(fuzz-suites)),$(shell grep -rHo --include='*_test.go' \
	'^func Fuzz[A-Za-z0-9]*' csi-driver/internal | sed 's|/[^/]*_test.go:func |:|' | sort))
fuzz: $(fuzz-c) $(if $(filter hostile,$(fuzz-suites)),hostile-program) ## \
	fuzzers, SECONDS=60 each, and attacks on volumes in use (SUITE=, ONLY=)
	@$(if $(filter-out hostile,$(fuzz-suites)),mk/test/fuzz "$(SECONDS)" $(fuzz-c) $(fuzz-go))
	@$(if $(filter hostile,$(fuzz-suites)),mk/tools/deps native tests && mk/test/hostile "$(HOURS)")
SECONDS ?= 60
HOURS ?= 6

image: ## the CSI driver's image, without a daemon: build/image/stargate-csi.tar
	@mk/image/build
chart: ## the Helm chart as one file: build/chart
	@mk/build/chart
deb: ## a Debian package with tools and module (DKMS): build/deb
	@mk/build/deb
release: ## package, image, chart and their checksums: build/release
	@mk/build/release
clean: ## remove all built files (ALL=1: also the caches of kernels and images)
	rm -rf build
	$(if $(filter 1,$(ALL)),rm -rf "$${STARGATE_CACHE:-$$HOME/.cache/stargate}")

help: ## show this list
	@printf 'StargateFS: make TARGET [VARIABLE=value ...]\n\nTargets:\n'
	@sed -e ':a; /\\$$/ { N; s/ *\\\n\t*/ /; ba }' Makefile | \
		sed -nE 's/^([a-z][a-z0-9-]*):.*## (.*)/  \1\t\2/p' | \
		grep -v '^  help' | expand -t 13
	@printf '\nVariables:\n'
	@sed -n 's/^##//p' Makefile
	@! command -v python3 >/dev/null || mk/test/list
