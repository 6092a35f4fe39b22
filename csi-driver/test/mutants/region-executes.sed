# SPDX-License-Identifier: Apache-2.0
#
# A volume's file may be a setuid program.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestBareShells
s/unix\.MOUNT_ATTR_NODEV | unix\.MOUNT_ATTR_NOSUID | unix\.MOUNT_ATTR_NOEXEC/unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC/
