# SPDX-License-Identifier: Apache-2.0
#
# Commands that run something: tests, fuzzers, modules and VMs, demo, lint.

##  KERNEL=6.12                   the kernel for `make module` and `make demo`
##  KERNELS="6.1 6.12 7.2"        kernels for `make modules`, `make test-vm`, `make test`
##  MAPS="walk splice shadow"     map modes for `make test-vm`, `make test`
##  ONLY="PATTERN ..."            run only the tests whose name matches one of these patterns
##  FORCE=1                       `make test-all` also runs cases that passed on the same inputs
##  KVER=                         another kernel than the running one for `make dkms-install`
##  TIER="1 2"                    tiers of `make e2e-kubevirt`; 3 is a node without KVM
##  KUBEVIRT=1.8                  the KubeVirt of `make e2e-kubevirt...`, or 1.9
##  SUITE= GOALS=                 the fresh machine and the goals of `make test-fresh` there
##  HOURS=6                       processor time of `make hostile`, earlier runs included
##  SECTIONS="fio hand"           parts of `make bench` to measure again (all)
##  UPDATE=1                      `make bench-gate` writes the counts instead of comparing them
##  SECONDS=60                    time per target for `make fuzz-quick` (fuzz: 3600)

# mk/test/run knows the suites; each is a target here, test-SUITE.
test-run := KERNELS="$(KERNELS)" MAPS="$(MAPS)" ONLY="$(ONLY)" FORCE="$(FORCE)" mk/test/run

.PHONY: demo demo-k8s test test-quick test-all test-fresh
.PHONY: e2e-k8s e2e-k8s-dax e2e-k8s-module e2e-k8s-external
.PHONY: e2e-kubevirt e2e-kubevirt-failures
.PHONY: csi csi-tests csi-volumes torture node-cuts
.PHONY: dkms-install dkms-remove
.PHONY: bench-gate bench-quick bench-together bench-overhead bench-targets bench bench-sem
.PHONY: bench-scale bench-flushes bench-profile bench-copy bench-all
.PHONY: hostile
.PHONY: fuzz fuzz-quick coverage module modules kvm-modules lint image deb clean distclean

demo: ## a VM works on files in the shared range
	@mk/tools/deps native
	@$(call script,e2e/demo)

demo-k8s: ## two pods of a Kubernetes cluster here work on one claim (KEEP=1: it stays)
	@mk/tools/deps native csi image cluster
	@KEEP="$(KEEP)" e2e/cluster/demo

test: ## the main tests of each subject, in a quarter of an hour: CI runs these
	@$(test-run) test
test-quick: ## the native tests only, quick amounts (2 to 3 minutes)
	@$(test-run) test-quick
test-all: ## everything, except cases that passed on the same inputs (FORCE=1: all of it)
	@$(test-run) test-all

suites := native asan tsan threads models models-long mutants units csi chart image scenarios \
	vm node modules debug mutants-vm sem-long csi-vm kubevirt guest fuzz coverage
.PHONY: $(suites:%=test-%)
$(suites:%=test-%):
	@$(test-run) $(@:test-%=%)
test-native: ## engine and tool tests, normal amounts; fuzzers' seeds and past crashes
test-asan: ## test programs under AddressSanitizer and UndefinedBehaviorSanitizer
test-tsan: ## test programs under ThreadSanitizer (test-threads: only those about threads)
test-models: ## the protocol between systems, checked by Spin (test-models-long: every state)
test-scenarios: ## the scenarios of `make test`: one of each subject, on one kernel
test-vm: ## e2e/scenarios in VMs, on all their kernels (KERNELS=, MAPS=)
test-node: ## the scenarios for a node: a host with KVM and guests in it
test-debug: ## some scenarios on a kernel with KASAN, lockdep and kmemleak
test-units: ## Go units: the CSI driver with csi-sanity in process, the rig
test-csi: ## the CSI driver on a zone of files: csi-sanity, deaths at each step
test-csi-vm: ## the CSI driver on reserved memory, LVM and real mounts, in a VM
test-sem-long: ## shared semaphores: 2 GiB in all block sizes, 10^7 acquisitions by 4 VMs
test-chart: ## charts/stargate, linted and rendered by Helm's library
test-image: ## make image twice: the same bytes; checks of the content
e2e-k8s: ## a Kubernetes cluster here: the chart, from install to uninstall
	@$(test-run) k8s
e2e-k8s-dax: ## the same with a second node, a VM with reserved memory, LVM and the module
	@$(test-run) k8s-dax
e2e-k8s-module: ## the same without a module: the driver's pod builds it by the node's DKMS
	@$(test-run) k8s-module
e2e-k8s-external: ## Kubernetes' own tests of storage drivers there (compiles them, once)
	@$(test-run) k8s-external
e2e-kubevirt: ## KubeVirt (compiled once): its own code (tier 1), VMs in a cluster (TIER=)
	$(if $(filter-out 1 2 3,$(TIER)),$(error TIER=$(TIER): there are 1 2 3))
	@KUBEVIRT="$(KUBEVIRT)" $(test-run) $(foreach tier,$(TIER),$(kubevirt-tier-$(tier)))
e2e-kubevirt-failures: ## failures and changes under VMs by KVM on reserved memory
	@KUBEVIRT="$(KUBEVIRT)" $(test-run) k8s-kubevirt-failures
TIER ?= 1 2
kubevirt-tier-1 := kubevirt
kubevirt-tier-2 := k8s-kubevirt-kvm
kubevirt-tier-3 := k8s-kubevirt
test-guest: ## a stock Debian where cloud-init installs the package, and the disk that contains it
test-kubevirt: ## KubeVirt's own code, our hook, libvirt and QEMU (compiles KubeVirt, once)
test-mutants: ## break the code on purpose; a test must fail for each
test-mutants-vm: ## the same with the module, and scenarios in VMs

torture: ## 1,000 systems die at random moments while others go on (KILLS=; resumable)
	@mk/tools/deps native tests
	@mk/test/repeat torture rig SG_KILLS $(KILLS) 50
KILLS ?= 1000
node-cuts: ## 100 power cuts of a node, whose memory keeps its bytes (CUTS=; resumable)
	@mk/tools/deps native tests
	@mk/test/repeat node-cuts node SG_CUTS $(CUTS) 10
CUTS ?= 100
csi-volumes: ## 10,000 volumes of LVM come and go through the driver (VOLUMES=; resumable)
	@mk/tools/deps native tests csi
	@env -u MAKEFLAGS -u MAKELEVEL $(MAKE) --no-print-directory csi csi-tests
	@SG_ONLY=OverTime MAPS=walk mk/test/repeat csi-many rig SG_VOLUMES $(VOLUMES) 1000
VOLUMES ?= 10000

test-fresh: ## a fresh machine: SUITE=bookworm, GOALS="test-quick demo", in an empty root
	@mk/test/fresh $(SUITE) $(GOALS)
SUITE ?= $(NATIVE_SUITE)
GOALS ?= test-quick

lint: ## shellcheck, Go, SPDX lines, line lengths, sparse
	@$(test-run) lint

# A single fuzzer in Go needs no clang.
fuzz-chosen = $(shell for f in $(fuzz-bins); do \
	[[ $$(basename $$f _fuzz) != $(ONLY) ]] || echo $$f; done)
fuzz: SECONDS := 3600
fuzz-quick: SECONDS := 60
fuzz: ## libFuzzer's and Go's fuzzers, SECONDS=3600 each (ONLY=)
fuzz-quick: ## libFuzzer's and Go's fuzzers, SECONDS=60 each (ONLY=)
fuzz fuzz-quick: $(if $(filter fuzz%,$(MAKECMDGOALS)),$(if $(ONLY),$(fuzz-chosen),fuzz-programs))
	@ONLY="$(ONLY)" mk/test/fuzz "$(SECONDS)" $(fuzz-bins) $(fuzz-go)
# FOLDER:FuzzNAME, those of the CSI driver.
fuzz-go = $(shell grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' csi-driver/internal | \
	sed 's|/[^/]*_test.go:func |:|' | sort)

hostile: ## attacks on volumes in use, HOURS=6 of processor time in all; resumable (FORMS=)
	@mk/tools/deps native tests
	@env -u MAKEFLAGS -u MAKELEVEL $(MAKE) --no-print-directory SAN=hostile hostile-program
	@mk/test/hostile "$(HOURS)"
HOURS ?= 6

coverage: ## lines of kernel/core that the native tests reach: build/coverage
	@$(test-run) coverage

csi: ## build/csi: stargate-csi, the CSI driver; stargate-hook and stargate-webhook, for KubeVirt
	@mk/tools/deps csi
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go build -trimpath -buildvcs=false \
		-ldflags '-s -w -X main.version=$(csi-version)' -o ../build/csi/ ./cmd/...
csi-tests: ## build/csi/csi-test: csi-sanity and more, for a VM that has a zone
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go test -c -trimpath -tags dax -ldflags '-s -w' \
		-o ../build/csi/csi-test ./test
csi-version = $(shell git describe --always --dirty 2>/dev/null || echo unversioned)

module: ## build/module/KERNEL/stargatefs.ko (KERNEL=)
	@mk/build/module $(KERNEL)
modules: ## the module for every kernel of KERNELS
	@$(test-run) modules
kvm-modules: ## KVM with kvm-patches for a stock kernel: build/kvm (SERIES=)
	@kvm-patches/build $(SERIES)
SERIES ?= 6.12

dkms-install: ## the module for this kernel, and for those installed later, by DKMS (KVER=)
	@mk/build/dkms install
dkms-remove: ## remove it again
	@mk/build/dkms remove

bench-gate: ## compare instruction counts with e2e/bench/baseline (UPDATE=1 writes it)
	@mk/tools/deps native tests
	@UPDATE="$(UPDATE)" mk/test/scenario e2e/scenarios/gate.sh $(KERNEL_DEFAULT) "walk splice shadow"
bench-quick: ## instruction counts, with tmpfs and ext4-dax for comparison
	@$(call script,e2e/bench/quick)
bench-targets: ## instruction counts, with ext4-dax, xfs-dax, tmpfs, memcpy: docs/performance
	@$(call script,e2e/bench/targets)
bench: ## times compared with 9p, virtiofs, NFS, Samba, virtio-blk (SECTIONS=): docs/performance
	@$(call script,e2e/bench/peers)
bench-together: ## several systems at once, compared with 9p and virtiofs: docs/together.md
	@$(call script,e2e/bench/together)
bench-sem: ## shared semaphores compared with pthreads, System V, flock, NFS, a server
	@$(call script,e2e/bench/sem)
bench-scale: ## volumes of 1 TiB, 10^7 files, 64 systems in one process, and extrapolations
	@$(call script,e2e/bench/scale)
bench-flushes: ## fences and lines written back, for each operation: docs/performance
	@$(call script,e2e/bench/flushes)
bench-profile: ## instructions by function, from samples: docs/performance
	@$(call script,e2e/bench/profile)
bench-copy: ## copies past this processor's caches and through them: docs/performance
	@$(call script,e2e/bench/copy)
bench-all: ## all figures of docs/performance for the file system itself, in sequence: hours
	@for one in targets quick profile flushes copy scale sem; do \
		$(MAKE) --no-print-directory bench-$$one || exit 1; done
	@$(MAKE) --no-print-directory bench
bench-overhead: ## the cost of coherence for a single system: docs/together.md
	@$(call script,e2e/bench/overhead)

deb: ## build/deb: a Debian package: module by DKMS, tools, the rule that mounts volumes
	@mk/build/deb
image: ## the CSI driver's image, without a daemon: build/image/stargate-csi.tar (VERSION=)
	@VERSION=$(VERSION) mk/image/build

clean: ## remove what was built here
	rm -rf build
distclean: clean ## remove the caches too (images, kernels)
	rm -rf "$${STARGATE_CACHE:-$$HOME/.cache/stargate}"

# Runs a script of another folder; its absence is an error with a name.
script = test -x $(1) || { echo "$@: there is no $(1)" >&2; exit 1; }; KERNEL=$(KERNEL) $(1)
