# SPDX-License-Identifier: Apache-2.0
#
# Two VMs get a volume that is ReadWriteOnce.
# file: csi-driver/internal/csi/node/node.go
# test: internal/csi/driver/TestOneMachine
s/\t\tif path != target {/		if path == "" {/
