# SPDX-License-Identifier: Apache-2.0
#
# A pod that takes the shell for the volume writes into it.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestBareShells
s/mounts\.Attributes(true, o\.mark())/mounts.Attributes(false, o.mark())/
