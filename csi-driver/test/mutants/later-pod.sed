# SPDX-License-Identifier: Apache-2.0
#
# A later pod of the same name gets the memory of a VM.
# file: csi-driver/internal/cluster/machines.go
# test: internal/cluster/TestMachines
s/if string(p\.UID) != uid {/if string(p.UID) != uid \&\& uid == "" {/
