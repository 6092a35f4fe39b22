# SPDX-License-Identifier: Apache-2.0
#
# A volume is deleted whose PersistentVolume is to stay.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestKeeps
s/!ended || !deletes {/!ended \&\& !deletes {/
