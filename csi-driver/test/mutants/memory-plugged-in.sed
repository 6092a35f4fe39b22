# SPDX-License-Identifier: Apache-2.0
#
# A VM with a volume allows memory hotplug.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestNothingPluggedIn
s/mem\.MaxGuest\.Cmp(\*mem\.Guest) != 0) {/mem.MaxGuest.Cmp(*mem.Guest) < 0) {/
