# SPDX-License-Identifier: Apache-2.0
#
# Each process of the node may open the memory of a volume.
# file: csi-driver/internal/publish/mounted.go
# test: internal/publish/TestMemoryForMachines
s/"region_mode=0660"/"region_mode=0666"/
