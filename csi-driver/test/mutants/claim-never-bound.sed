# SPDX-License-Identifier: Apache-2.0
#
# A pod gets the memory of a PersistentVolume to which no claim is bound.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestMachines
s/of != nil && of\.UID != "" &&/of != nil \&\&/
