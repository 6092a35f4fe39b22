# SPDX-License-Identifier: Apache-2.0
#
# A volume's memory can be opened through mounts of all pods.
# file: csi-driver/internal/publish/module.go
# test: internal/publish/TestMemoryForMachines
s/\tif d\.m\.Takes(fsType, marked) {/	if !d.m.Takes(fsType, marked) {/
