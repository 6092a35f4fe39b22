# SPDX-License-Identifier: Apache-2.0
#
# A VM has volumes of two drivers.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestTwoDrivers
s/named && ours && other != r\.cluster\.Driver {/named \&\& !ours \&\& other != r.cluster.Driver {/
