# SPDX-License-Identifier: Apache-2.0
#
# The pod of a VM has no memory for the volume that is charged to it.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestLauncherReserve
s/if !limited || more == 0 {/if !limited || more >= 0 {/
