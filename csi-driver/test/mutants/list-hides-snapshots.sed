# SPDX-License-Identifier: Apache-2.0
#
# A list of volumes that fails hides lost snapshots.
# file: csi-driver/internal/cluster/orphans.go
# test: internal/cluster/TestOrphansOfOneSourceUnread
s/if !s\.looks || err == nil {/if err == nil {/
