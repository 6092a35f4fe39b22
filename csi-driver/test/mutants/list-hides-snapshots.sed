# SPDX-License-Identifier: Apache-2.0
#
# If the list of volumes fails, orphaned snapshots are not reported.
# file: csi-driver/internal/cluster/orphans.go
# test: internal/cluster/TestOrphansOfOneSourceUnread
s/if !s\.looks || err == nil {/if err == nil {/
