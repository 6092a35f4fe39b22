# SPDX-License-Identifier: Apache-2.0
#
# A fill that was interrupted begins anew.
# file: csi-driver/internal/dataset/fill/parts.go
# test: internal/dataset/fill/TestContinues
s/had\[i\] == 1/had[i] == 2/
