# SPDX-License-Identifier: Apache-2.0
#
# A VM with volumes keeps the cluster's evictionStrategy, which migrates it.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestEviction
s/\tif unset {/	if unset \&\& m.Name == "" {/
