# SPDX-License-Identifier: Apache-2.0
#
# The log does not report that the certificate ends soon.
# file: csi-driver/internal/kubevirt/webhook/folder.go
# test: internal/kubevirt/webhook/TestCertificateEnds
s/< min(endsSoon,/> min(endsSoon,/
