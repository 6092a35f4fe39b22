# SPDX-License-Identifier: Apache-2.0
#
# The webhook uses an expired certificate.
# file: csi-driver/internal/kubevirt/webhook/folder.go
# test: internal/kubevirt/webhook/TestCertificateBefore
s/berr == nil && now\.Before(before\.Leaf\.NotAfter)/berr == nil/
