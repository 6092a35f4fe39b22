# SPDX-License-Identifier: Apache-2.0
#
# A device node in a volume is a device for a pod.
# file: csi-driver/internal/publish/publish.go
# test: internal/publish/TestNoSetuidNoDevices
s/a |= unix\.MOUNT_ATTR_NODEV/a |= 0/
