# SPDX-License-Identifier: Apache-2.0
#
# Everything that runs something: tests, fuzzers, modules and VMs, demo, lint.

##  KERNEL=6.12                   the kernel for `make module` and `make demo`
##  KERNELS="6.1 6.12 7.2"        kernels for `make modules`, `make test-vm`, `make test`
##  MAPS="walk splice shadow"     map modes for `make test-vm`, `make test`
##  ONLY=PATTERN                  run only the tests whose name matches this shell pattern
##  KVER=                         another kernel than the running one for `make dkms-install`
##  SUITE= GOALS=                 the fresh machine and what `make test-fresh` makes there
##  SECONDS=60                    time per target for `make fuzz-quick` (fuzz: 3600)

run-tests := KERNELS="$(KERNELS)" MAPS="$(MAPS)" ONLY="$(ONLY)" mk/run-tests

.PHONY: demo test test-quick test-native test-asan test-ubsan test-tsan
.PHONY: test-vm test-debug test-mutants test-fresh
.PHONY: dkms-install dkms-remove
.PHONY: fuzz fuzz-quick coverage module modules sparse lint bench-quick image clean distclean

demo: ## see a VM work on files in the shared range
	@mk/deps native
	@$(call script,e2e/demo)

test: ## prove every claim: lint, native, sanitizers, modules, VMs
	@$(run-tests) lint native asan ubsan tsan modules vm

test-quick: ## the native tests only, quick amounts (under 3 minutes)
	@SG_TEST_SCALE=$${SG_TEST_SCALE:-quick} $(run-tests) native

test-native test-asan test-ubsan test-tsan test-vm test-debug test-mutants:
	@$(run-tests) $(@:test-%=%)
test-native: ## engine and tool tests, fuzzers' seeds and past crashes
test-asan: ## the same under AddressSanitizer
test-ubsan: ## the same under UndefinedBehaviorSanitizer
test-tsan: ## the same under ThreadSanitizer
test-vm: ## e2e/scenarios in VMs (KERNELS=, MAPS=)
test-debug: ## some of them on a kernel with KASAN, lockdep and kmemleak
test-mutants: ## break the code on purpose and see a test fail for each

test-fresh: ## what a stranger sees: SUITE=bookworm, GOALS="test-quick demo", in an empty root
	@mk/run-fresh $(SUITE) $(GOALS)
SUITE ?= $(NATIVE_SUITE)
GOALS ?= test-quick

lint: ## shellcheck, Go, SPDX lines, line lengths, sparse
	@$(run-tests) lint

fuzz: SECONDS := 3600
fuzz-quick: SECONDS := 60
fuzz: ## libFuzzer targets, SECONDS=3600 each
fuzz-quick: ## libFuzzer targets, SECONDS=60 each
fuzz fuzz-quick: fuzz-programs
	@mk/run-fuzz "$(SECONDS)" $(fuzz-bins)

coverage: ## lines of kernel/core that the native tests reach: build/coverage
	@mk/run-coverage

module: ## build/module/KERNEL/stargatefs.ko (KERNEL=)
	@mk/build-module $(KERNEL)
modules: ## the module for every kernel of KERNELS
	@$(run-tests) modules
sparse: ## sparse over engine, tools and module
	@mk/run-sparse

dkms-install: ## the module for this kernel, and for those installed later, by DKMS (KVER=)
	@mk/dkms install
dkms-remove: ## take that away again
	@mk/dkms remove

bench-quick: ## instruction counts beside tmpfs and ext4-dax
	@$(call script,e2e/bench/quick)

image: ## the native part by Docker or buildah: tested, then its tools alone as an image
	@mk/build-image

clean: ## remove what was built here
	rm -rf build
distclean: clean ## remove the caches too (images, kernels)
	rm -rf "$${STARGATE_CACHE:-$$HOME/.cache/stargate}"

# Run a script of another folder; its absence is an error with a name.
script = test -x $(1) || { echo "$@: there is no $(1)" >&2; exit 1; }; KERNEL=$(KERNEL) $(1)
