# SPDX-License-Identifier: Apache-2.0
#
# A volume of the same name in another zone is deleted.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestOfAnotherZone
s/\tif of\.Elsewhere(v\.Zone) {/	if of.Elsewhere(v.Zone) \&\& of.Name == "" {/
