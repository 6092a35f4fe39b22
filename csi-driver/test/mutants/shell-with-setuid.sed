# SPDX-License-Identifier: Apache-2.0
#
# A shell may hold setuid programs.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestBareShells
s/"nodev", "nosuid", "noexec"}/"nodev", "noexec"}/
