# SPDX-License-Identifier: Apache-2.0
#
# A volume that waits for its claim counts as an orphan.
# file: csi-driver/internal/cluster/orphans.go
# test: internal/cluster/TestWaitingIsNoOrphan
s/&& !waits\[v\.Name\] {/\&\& !(waits[v.Name] \&\& v.Name == "") {/
