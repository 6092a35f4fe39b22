# SPDX-License-Identifier: Apache-2.0
#
# Each process of the node may call the driver.
# file: csi-driver/internal/grpcserver/listen.go
# test: internal/grpcserver/TestSocketGoesWithItsServer
s/unix\.Chmod(temporary, 0o600)/unix.Chmod(temporary, 0o666)/
