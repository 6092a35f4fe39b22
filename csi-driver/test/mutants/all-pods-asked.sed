# SPDX-License-Identifier: Apache-2.0
#
# The driver queries the cluster about each pod.
# file: csi-driver/internal/csi/node/machines.go
# test: internal/csi/driver/TestMachinesPods
s/!strings\.HasPrefix(pod, launcherPrefix)/strings.HasPrefix(pod, "-")/
