# SPDX-License-Identifier: Apache-2.0
#
# Two VMs with one UUID may write one volume.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestTwins
s/!machineid\.Same(other\.uuid, m\.uuid()) ||/machineid.Same(other.uuid, m.uuid()) ||/
