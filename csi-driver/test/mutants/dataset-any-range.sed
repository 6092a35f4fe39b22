# SPDX-License-Identifier: Apache-2.0
#
# A server sends another range than the requested one.
# file: csi-driver/internal/dataset/source/ranges.go
# test: internal/dataset/source/TestHostileServers
s/got, asked := res\.Header\.Get("Content-Range"), spanOf(from, from+n-1, f\.Size); got != asked/got, asked := res.Header.Get("Content-Range"), "x"; got == asked/
