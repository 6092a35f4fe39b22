# SPDX-License-Identifier: Apache-2.0
#
# A client may hold any number of connections to the webhook.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyConnections
s/crowd\.Limit(l, mostConns)/crowd.Limit(l, 1<<20)/
