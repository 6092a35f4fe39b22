# SPDX-License-Identifier: Apache-2.0
#
# A VM with read-only memory gets a volume that other systems write.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/case !o\.readersOnly() && c\.ReadOnly:/case !o.readersOnly() \&\& c.ReadOnly \&\& c.Name == "":/
