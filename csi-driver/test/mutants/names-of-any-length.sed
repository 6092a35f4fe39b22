# SPDX-License-Identifier: Apache-2.0
#
# The log accepts names of any length.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestNoReviews
s/return len(name) > mostName })/return len(name) > mostReview })/
