# SPDX-License-Identifier: Apache-2.0
#
# A VM gets a claim of another driver.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/case o\.driver != ours:/case o.driver != ours \&\& o.driver == "":/
