# SPDX-License-Identifier: Apache-2.0
#
# The name of a claim may be a path.
# file: csi-driver/internal/kubevirt/annotation/claims.go
# test: internal/kubevirt/annotation/TestParse
s/case len(claim) > maxName || !name\.MatchString(claim):/case len(claim) > maxName:/
