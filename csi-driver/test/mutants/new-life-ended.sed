# SPDX-License-Identifier: Apache-2.0
#
# A check of mounts ends a life that was recorded after the check began.
# file: csi-driver/internal/kubevirt/nodehook/given.go
# test: internal/kubevirt/nodehook/TestGivenWithoutAnEnd
s/l\.ended\.IsZero() && l\.noted\.Before(began) &&/l.ended.IsZero() \&\&/
