# SPDX-License-Identifier: Apache-2.0
#
# The file of a volume may be a setuid program.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestBareShells
s/unix\.MOUNT_ATTR_NODEV | unix\.MOUNT_ATTR_NOSUID | unix\.MOUNT_ATTR_NOEXEC/unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC/
