# SPDX-License-Identifier: Apache-2.0
#
# A review may collect any number of VMs.
# file: csi-driver/internal/kubevirt/webhook/lists.go
# test: internal/kubevirt/webhook/TestManySharers
s/len(all) > mostSharers {/len(all) > mostReview {/
