# SPDX-License-Identifier: Apache-2.0
#
# A class marks the mounts of all pods as those of VMs.
# file: csi-driver/internal/csi/request/capabilities.go
# test: internal/csi/request/TestMountOptionsOfTheNode
s/case "nodiratime": \/\//case "marked": \/\//
