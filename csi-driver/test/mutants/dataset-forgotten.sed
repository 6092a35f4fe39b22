# SPDX-License-Identifier: Apache-2.0
#
# The next driver does not find the copies of an earlier one.
# file: csi-driver/internal/dataset/room.go
# test: internal/dataset/TestRestart
s/if m\.holds\[v\.Name\] == nil {/if m.holds[v.Name] != nil {/
