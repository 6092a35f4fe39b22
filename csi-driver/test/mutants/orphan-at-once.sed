# SPDX-License-Identifier: Apache-2.0
#
# A new volume counts as an orphan.
# file: csi-driver/internal/cluster/orphans.go
# test: internal/cluster/TestOrphans
s/s\.told\[o\.name\] = again/s.told[o.name] = again || !told/
