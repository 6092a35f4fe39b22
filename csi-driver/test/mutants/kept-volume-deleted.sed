# SPDX-License-Identifier: Apache-2.0
#
# The driver deletes a volume whose PersistentVolume must remain.
# file: csi-driver/internal/csi/controller/cluster.go
# test: internal/csi/driver/TestTwoNames
s/\tif len(keep) > 0 {/	if len(keep) > 99 {/
