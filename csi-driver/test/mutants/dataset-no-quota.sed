# SPDX-License-Identifier: Apache-2.0
#
# The copies of a namespace exceed its quota.
# file: csi-driver/internal/dataset/room.go
# test: internal/dataset/TestQuotas
s/own+size > most/own > most/
