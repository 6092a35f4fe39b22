# SPDX-License-Identifier: Apache-2.0
#
# A look removes a copy ahead of pods, and the next look fills it again.
# file: csi-driver/internal/dataset/run.go
# test: internal/dataset/TestAheadUnderPressure
s/return !h\.ahead/return true/
