# SPDX-License-Identifier: Apache-2.0
#
# A VM that runs may name other volumes.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestRunningMachines
s/(was != is || had != has)/(was != is \&\& had != has)/
