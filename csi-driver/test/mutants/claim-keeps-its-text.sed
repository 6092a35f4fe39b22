# SPDX-License-Identifier: Apache-2.0
#
# A claim keeps the complete annotation in memory.
# file: csi-driver/internal/kubevirt/annotation/claims.go
# test: internal/kubevirt/annotation/TestNamesStandAlone
s/strings\.Clone(claim)/claim/
