# SPDX-License-Identifier: Apache-2.0
#
# A volume is deleted whose PersistentVolume is to stay.
# file: csi-driver/internal/csi/controller/cluster.go
# test: internal/csi/driver/TestTwoNames
s/\tif len(keep) > 0 {/	if len(keep) > 99 {/
