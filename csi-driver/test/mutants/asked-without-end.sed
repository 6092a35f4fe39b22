# SPDX-License-Identifier: Apache-2.0
#
# An API server that does not answer keeps a deletion waiting.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestAskedInTime
s/ctx, cancel := context\.WithTimeout(ctx, n\.asks)/ctx, cancel := context.WithTimeout(ctx, time.Hour)/
