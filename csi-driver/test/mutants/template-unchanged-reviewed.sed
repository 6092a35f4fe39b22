# SPDX-License-Identifier: Apache-2.0
#
# The webhook reviews the template of a VM that is only stopped or labelled.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestChangedMachines
s/err != nil || same {/err != nil || same \&\& err != nil {/
