# SPDX-License-Identifier: Apache-2.0
#
# A pod can write to the shell, which it may mistake for the volume.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestBareShells
s/mounts\.Attributes(true, o\.mark())/mounts.Attributes(false, o.mark())/
