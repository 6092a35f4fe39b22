# SPDX-License-Identifier: Apache-2.0
#
# A VM starts beside another one of its UUID.
# file: csi-driver/internal/kubevirt/nodehook/given.go
# test: internal/kubevirt/nodehook/TestTwins
s/l\.board != "" && l\.board == m\.uuid() &&/l.board != "" \&\& l.board != m.uuid() \&\&/
