# SPDX-License-Identifier: Apache-2.0
#
# The driver deletes a volume because a volume in another zone has the same name.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestOfAnotherZone
s/\tif of\.Elsewhere(v\.Zone) {/	if of.Elsewhere(v.Zone) \&\& of.Name == "" {/
