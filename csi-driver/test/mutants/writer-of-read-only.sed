# SPDX-License-Identifier: Apache-2.0
#
# A VM gets write access to a claim that is ReadOnlyMany.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/case o\.readersOnly() && !c\.ReadOnly:/case o.readersOnly() \&\& !c.ReadOnly \&\& c.Name == "":/
