# SPDX-License-Identifier: Apache-2.0
#
# A pod waits without a limit for an API server that does not answer.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestAskedInTime
s/ctx, cancel := context\.WithTimeout(ctx, limit)/ctx, cancel := context.WithTimeout(ctx, time.Hour)/
