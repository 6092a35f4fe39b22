# SPDX-License-Identifier: Apache-2.0
#
# A VM starts while another VM with its UUID has the volume.
# file: csi-driver/internal/kubevirt/nodehook/given.go
# test: internal/kubevirt/nodehook/TestTwins
s/l\.board != "" && l\.board == m\.uuid() &&/l.board != "" \&\& l.board != m.uuid() \&\&/
