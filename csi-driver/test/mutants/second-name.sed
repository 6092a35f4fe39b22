# SPDX-License-Identifier: Apache-2.0
#
# A volume gets a second PersistentVolume.
# file: csi-driver/internal/csi/controller/cluster.go
# test: internal/csi/driver/TestTwoNames
s/\t\tif other != r\.GetName() {/		if other == "" {/
