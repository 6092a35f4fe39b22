# SPDX-License-Identifier: Apache-2.0
#
# Parts of `make build` that other programs than this make compile, and what is packed.

.PHONY: csi csi-tests module kvm-modules install-module

# stargate-csi, the CSI driver; stargate-hook and stargate-webhook, for KubeVirt; and more.
csi:
	@mk/tools/deps csi
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go build -buildvcs=false \
		-ldflags '-s -w -X main.version=$(csi-version)' -o ../build/csi/ ./cmd/...
csi-version = $(shell git describe --always --dirty 2>/dev/null || echo unversioned)

# csi-sanity and more, for a VM that has a zone.
csi-tests:
	@mkdir -p build/csi
	@cd csi-driver && ../mk/tools/go test -c -tags dax -ldflags '-s -w' \
		-o ../build/csi/csi-test ./test

module:
	@mk/build/module $(KERNEL)
install-module:
	@mk/build/dkms install

# KVM with kvm-patches for a stock kernel.
kvm-modules:
	@kvm-patches/build $(SERIES)
SERIES ?= 6.12
