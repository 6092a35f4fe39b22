# SPDX-License-Identifier: Apache-2.0
#
# The PersistentVolume of a volume in another zone prevents the deletion of a volume in this zone.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestKeeps
s/ && !id\.Elsewhere(volume\.Zone) &&/ \&\&/
