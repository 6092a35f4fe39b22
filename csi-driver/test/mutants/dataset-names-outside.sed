# SPDX-License-Identifier: Apache-2.0
#
# A source names a file outside of the data set.
# file: csi-driver/internal/dataset/fill/plan.go
# test: internal/dataset/fill/TestNames
s/ || strings\.HasPrefix(name, "\.\.\/")//
