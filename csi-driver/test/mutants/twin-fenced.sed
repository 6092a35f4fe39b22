# SPDX-License-Identifier: Apache-2.0
#
# The end of a VM fences a paused VM with the same UUID.
# file: csi-driver/internal/kubevirt/nodehook/nodehook.go
# test: internal/kubevirt/nodehook/TestTwins
s/h\.given\.twin(m, v\.Name, has) != "" {/h.given.twin(m, v.Name, has) == "-" {/
