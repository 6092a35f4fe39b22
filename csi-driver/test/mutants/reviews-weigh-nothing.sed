# SPDX-License-Identifier: Apache-2.0
#
# Any number of large reviews are in memory at once.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyBytes
s/share := max(size, leastReview)/share := min(size, 1)/
