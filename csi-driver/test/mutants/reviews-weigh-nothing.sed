# SPDX-License-Identifier: Apache-2.0
#
# Any number of large reviews may be in memory at the same time.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyBytes
s/share := max(size, leastReview)/share := min(size, 1)/
