# SPDX-License-Identifier: Apache-2.0
#
# A VM gets one volume twice.
# file: csi-driver/internal/kubevirt/annotation/claims.go
# test: internal/kubevirt/annotation/TestParse
s/case seen\[claim\]:/case seen[claim] \&\& claim == "":/
