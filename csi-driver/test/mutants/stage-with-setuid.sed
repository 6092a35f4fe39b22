# SPDX-License-Identifier: Apache-2.0
#
# A setuid program in a volume makes a user root.
# file: csi-driver/internal/publish/module.go
# test: internal/publish/TestNoSetuidNoDevices
s/\tif !o\.Setuid {/	if o.Setuid {/
