# SPDX-License-Identifier: Apache-2.0
#
# A pod is published although the cluster did not answer whether it runs a VM.
# file: csi-driver/internal/csi/node/machines.go
# test: internal/csi/driver/TestMachinesPods
s/\tif err != nil {/	if err != nil \&\& is {/
