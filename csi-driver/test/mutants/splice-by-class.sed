# SPDX-License-Identifier: Apache-2.0
#
# A class can make the node follow VMs' tables without the node's permission.
# file: csi-driver/internal/csi/request/capabilities.go
# test: internal/csi/request/TestMountOptionsOfTheNode
s/slices\.Contains(o\.Flags, "map=splice") && !c\.AllowHostSplice/slices.Contains(o.Flags, "map=splice") \&\& c.AllowHostSplice/
