# SPDX-License-Identifier: Apache-2.0
#
# A volume is deleted while a pod has it.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestOnePod
s/\tif len(shown) > 0 {/	if len(shown) > 99 {/
