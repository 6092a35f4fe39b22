# SPDX-License-Identifier: Apache-2.0
#
# A review may take longer than the API server waits.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestLimit
s/return min(waits\*4\/5, reviewLimit)/return min(waits*2, reviewLimit)/
