# SPDX-License-Identifier: Apache-2.0
#
# A copy is removed while pods have it.
# file: csi-driver/internal/dataset/room.go
# test: internal/dataset/TestRemoval
s/n > 0 || err != nil/n > 1000 || err != nil/
