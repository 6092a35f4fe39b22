# SPDX-License-Identifier: Apache-2.0
#
# A VM starts with a volume that cannot be used.
# file: csi-driver/internal/kubevirt/nodehook/nodehook.go
# test: internal/kubevirt/nodehook/TestStartsWithAllVolumes
s/\t\tif !v\.State\.Whole() {/		if v.State == "" {/
