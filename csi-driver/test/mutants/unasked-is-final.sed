# SPDX-License-Identifier: Apache-2.0
#
# The webhook refuses a VM permanently although it could not check the VM.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestUnanswered
s/res\.Result\.Reason, res\.Result\.Code = metav1\.StatusReasonInternalError, http\.StatusInternalServerError/res.Result.Reason, res.Result.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity/
