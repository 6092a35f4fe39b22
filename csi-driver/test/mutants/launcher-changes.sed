# SPDX-License-Identifier: Apache-2.0
#
# A pod of a VM may name other volumes later.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestPodsThatNameVolumes
s/!had || was != is {/!had || was != is \&\& is == "" {/
