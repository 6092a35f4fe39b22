# SPDX-License-Identifier: Apache-2.0
#
# A pod can use a device node in a volume as a device.
# file: csi-driver/internal/publish/publish.go
# test: internal/publish/TestNoSetuidNoDevices
s/a |= unix\.MOUNT_ATTR_NODEV/a |= 0/
