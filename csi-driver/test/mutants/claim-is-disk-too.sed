# SPDX-License-Identifier: Apache-2.0
#
# A claim of a VM may also be a disk of the VM.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/if name := disk(s, wanted); name != "" {/if name := disk(s, wanted); name != "" \&\& template {/
