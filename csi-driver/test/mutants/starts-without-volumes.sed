# SPDX-License-Identifier: Apache-2.0
#
# A VM starts without one of its volumes.
# file: csi-driver/internal/kubevirt/nodehook/nodehook.go
# test: internal/kubevirt/nodehook/TestStartsWithAllVolumes
s/if len(volumes) < len(wanted) {/if len(volumes) > len(wanted) {/
