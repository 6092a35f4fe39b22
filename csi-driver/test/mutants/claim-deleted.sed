# SPDX-License-Identifier: Apache-2.0
#
# A VM gets a claim that is being deleted.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/case p\.DeletionTimestamp != nil:/case p.DeletionTimestamp != nil \&\& p.Name == "":/
