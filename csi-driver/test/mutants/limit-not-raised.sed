# SPDX-License-Identifier: Apache-2.0
#
# The memory limit of a VM's pod does not include the volume that is charged to it.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestLauncherReserve
s/if !limited || more == 0 {/if !limited || more >= 0 {/
