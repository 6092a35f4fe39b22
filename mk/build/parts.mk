# SPDX-License-Identifier: Apache-2.0
#
# Parts of `make build` that other build programs compile, and the packages.

.PHONY: csi csi-tests kubectl module kvm-modules tune vsched
.PHONY: install-kubectl install-module install-tune install-vsched

# All programs of csi-driver: stargate-csi, the CSI driver; stargate-hook and stargate-webhook, for
# KubeVirt; and others.
csi:
	@mk/tools/deps csi
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go build -buildvcs=false \
		-ldflags '-s -w -X main.version=$(csi-version)' -o ../build/csi/ ./cmd/stargate-...
csi-version = $(shell git describe --always --dirty 2>/dev/null || echo unversioned)

# Test programs of the CSI driver, csi-sanity among them, for a VM that has a zone.
csi-tests:
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go test -c -tags dax -ldflags '-s -w' \
		-o ../build/csi/csi-test ./test

# kubectl-stargate, a plugin of kubectl. GOOS= and GOARCH= choose another system than this one.
kubectl:
	@mk/tools/deps csi
	@mkdir -p build/kubectl
	@cd csi-driver && CGO_ENABLED=0 ../mk/tools/go build -buildvcs=false \
		-ldflags '-s -w -X main.version=$(shell mk/build/version)' \
		-o ../build/kubectl/ ./cmd/kubectl-stargate
install-kubectl: kubectl
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin build/kubectl/kubectl-stargate \
		csi-driver/cmd/kubectl-stargate/kubectl_complete-stargate

module:
	@mk/build/module $(KERNEL)
install-module:
	@mk/build/dkms install

# The modules of KVM for a stock kernel, with the patches of kvm-patches.
kvm-modules:
	@kvm-patches/build $(SERIES)
SERIES ?= 6.12

# stargate-tune, which tunes guests; it needs Go and no library.
tune:
	@mk/tools/deps tune
	@mkdir -p build/tune
	@cd kernel/tools/tune && ../../../mk/tools/go build -buildvcs=false \
		-ldflags '-s -w -X main.version=$(shell mk/build/version)' \
		-o ../../../build/tune/stargate-tune .
install-tune: tune
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin build/tune/stargate-tune
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 kernel/tools/man/stargate-tune.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		kernel/tools/completion/stargate-tune
	sed 's|@SBIN@|$(PREFIX)/sbin|' kernel/tools/tune/stargate-tune.service.in | \
		install -D -m 644 /dev/stdin \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/stargate-tune.service
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system/sysinit.target.wants
	ln -sf ../stargate-tune.service \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/sysinit.target.wants/

# stargate-vsched, which schedules vCPUs. It needs a compiler for BPF, which the script installs in
# a root of its own.
vsched:
	@mk/build/vsched
install-vsched: vsched
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin build/vsched/stargate-vsched
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 kernel/tools/man/stargate-vsched.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		kernel/tools/completion/stargate-vsched
	sed 's|@SBIN@|$(PREFIX)/sbin|' kernel/vsched/stargate-vsched.service.in | \
		install -D -m 644 /dev/stdin \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/stargate-vsched.service
