# SPDX-License-Identifier: Apache-2.0
#
# A KubeVirt object that any user has created decides about all VMs.
# file: csi-driver/internal/kubevirt/webhook/cluster.go
# test: internal/kubevirt/webhook/TestAnotherKubeVirt
s/return version != ""/return version == ""/
