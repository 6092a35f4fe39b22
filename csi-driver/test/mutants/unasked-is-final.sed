# SPDX-License-Identifier: Apache-2.0
#
# A VM that could not be examined is refused for good.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestUnanswered
s/res\.Result\.Reason, res\.Result\.Code = metav1\.StatusReasonInternalError, http\.StatusInternalServerError/res.Result.Reason, res.Result.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity/
