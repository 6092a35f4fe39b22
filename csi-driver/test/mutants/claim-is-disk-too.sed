# SPDX-License-Identifier: Apache-2.0
#
# A claim of a VM is its disk, too.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/if name := disk(s, wanted); name != "" {/if name := disk(s, wanted); name != "" \&\& template {/
