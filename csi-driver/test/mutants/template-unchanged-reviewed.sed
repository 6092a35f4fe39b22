# SPDX-License-Identifier: Apache-2.0
#
# A VM that is only stopped or labelled is reviewed.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestChangedMachines
s/err != nil || same {/err != nil || same \&\& err != nil {/
