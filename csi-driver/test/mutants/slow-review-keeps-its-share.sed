# SPDX-License-Identifier: Apache-2.0
#
# A client that sends slowly makes other clients wait.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyBytes
s/time\.Now()\.Add(arriving)/time.Now().Add(100 * arriving)/
