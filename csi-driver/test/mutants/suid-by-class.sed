# SPDX-License-Identifier: Apache-2.0
#
# A class removes nosuid without the node's permission.
# file: csi-driver/internal/csi/request/capabilities.go
# test: internal/csi/driver/TestSuidDevAllowed
s/(o\.Setuid || o\.Devices) && !c\.AllowSuidDev/(o.Setuid \&\& o.Devices) \&\& !c.AllowSuidDev/
