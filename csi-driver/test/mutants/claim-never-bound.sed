# SPDX-License-Identifier: Apache-2.0
#
# A pod gets the memory of a PersistentVolume that no claim has.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestMachines
s/of != nil && of\.UID != "" &&/of != nil \&\&/
