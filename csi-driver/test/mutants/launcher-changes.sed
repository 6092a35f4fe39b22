# SPDX-License-Identifier: Apache-2.0
#
# A user may change the volumes that a pod of a VM names.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestPodsThatNameVolumes
s/!had || was != is {/!had || was != is \&\& is == "" {/
