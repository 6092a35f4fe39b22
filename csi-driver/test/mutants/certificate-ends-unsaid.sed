# SPDX-License-Identifier: Apache-2.0
#
# No line of the log says that the certificate ends.
# file: csi-driver/internal/kubevirt/webhook/folder.go
# test: internal/kubevirt/webhook/TestCertificateEnds
s/< min(endsSoon,/> min(endsSoon,/
