# SPDX-License-Identifier: Apache-2.0
#
# A connection that the server does not read takes a megabyte.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyConnections
s/protocols\.SetHTTP1(true)/protocols.SetHTTP1(true); protocols.SetHTTP2(true)/
