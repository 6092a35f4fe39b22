# SPDX-License-Identifier: Apache-2.0
#
# A review may have any number of values.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyBytes
s/values += int64(bytes\.Count(text, \[\]byte(begins)))/values |= int64(len(begins))/
