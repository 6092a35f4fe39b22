# SPDX-License-Identifier: Apache-2.0
#
# A VM whose pod runs does not count against one with an earlier stamp.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestStampedEarlierStoredLater
s/return launched\[other\.name\] || earlier(m, other) }/return launched[other.name] \&\& earlier(m, other) }/
