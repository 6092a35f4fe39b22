# SPDX-License-Identifier: Apache-2.0
#
# A copy that could not be read when the driver started is filled again, over its files.
# file: csi-driver/internal/dataset/filling.go
# test: internal/dataset/TestUnreadCopy
s/err = m\.adoptOne(ctx, v)/_ = v/
