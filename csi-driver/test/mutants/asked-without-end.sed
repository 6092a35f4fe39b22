# SPDX-License-Identifier: Apache-2.0
#
# A deletion waits without a limit for an API server that does not answer.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestAskedInTime
s/ctx, cancel := context\.WithTimeout(ctx, n\.asks)/ctx, cancel := context.WithTimeout(ctx, time.Hour)/
