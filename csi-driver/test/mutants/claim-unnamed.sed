# SPDX-License-Identifier: Apache-2.0
#
# A VM gets the memory of claims that it does not name.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestMachines
s/return c\.Name == of\.Name })/return c.Name != "" })/
