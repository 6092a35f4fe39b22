# SPDX-License-Identifier: Apache-2.0
#
# A context can add other mount options.
# file: csi-driver/internal/csi/request/capabilities.go
# test: internal/csi/request/TestMountOptions
s/s\[0-9\]+\$`)/s[0-9]+`)/
