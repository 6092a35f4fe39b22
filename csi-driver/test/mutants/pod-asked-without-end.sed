# SPDX-License-Identifier: Apache-2.0
#
# An API server that does not answer keeps a pod waiting.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestAskedInTime
s/ctx, cancel := context\.WithTimeout(ctx, limit)/ctx, cancel := context.WithTimeout(ctx, time.Hour)/
