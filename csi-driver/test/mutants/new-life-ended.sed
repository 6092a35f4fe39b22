# SPDX-License-Identifier: Apache-2.0
#
# A look ends a life that began after it.
# file: csi-driver/internal/kubevirt/nodehook/given.go
# test: internal/kubevirt/nodehook/TestGivenWithoutAnEnd
s/l\.ended\.IsZero() && l\.noted\.Before(began) &&/l.ended.IsZero() \&\&/
