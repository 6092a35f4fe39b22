# SPDX-License-Identifier: Apache-2.0
#
# The driver deletes a volume whose PersistentVolume must remain.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestKeeps
s/!ended || !deletes {/!ended \&\& !deletes {/
