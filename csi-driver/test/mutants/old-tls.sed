# SPDX-License-Identifier: Apache-2.0
#
# The webhook accepts an old version of TLS.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestManyConnections
s/tls\.VersionTLS12/tls.VersionTLS10/
