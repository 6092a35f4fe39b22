# SPDX-License-Identifier: Apache-2.0
#
# The webhook uses a certificate that API servers do not trust yet.
# file: csi-driver/internal/kubevirt/webhook/folder.go
# test: internal/kubevirt/webhook/TestCertificateBefore
s/now\.After(c\.Leaf\.NotBefore\.Add(mature))/now.After(c.Leaf.NotBefore)/
