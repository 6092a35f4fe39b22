# SPDX-License-Identifier: Apache-2.0
#
# The driver deletes a volume that a pod uses.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestOnePod
s/\tif len(shown) > 0 {/	if len(shown) > 99 {/
