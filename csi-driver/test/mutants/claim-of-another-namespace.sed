# SPDX-License-Identifier: Apache-2.0
#
# A pod gets the memory of a claim in another namespace.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestMachines
s/ && of\.Namespace == namespace &&/ \&\&/
