# SPDX-License-Identifier: Apache-2.0
#
# A VM whose pod runs does not count against a VM with an earlier time stamp.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestStampedEarlierStoredLater
s/return launched\[other\.name\] || earlier(m, other) }/return launched[other.name] \&\& earlier(m, other) }/
