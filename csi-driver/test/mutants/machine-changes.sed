# SPDX-License-Identifier: Apache-2.0
#
# A user may change the volumes that a running VM names.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestRunningMachines
s/(was != is || had != has)/(was != is \&\& had != has)/
