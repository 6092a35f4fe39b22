# SPDX-License-Identifier: Apache-2.0
#
# A name in a review can change the path of the webhook's request to the API server.
# file: csi-driver/internal/kubevirt/webhook/lists.go
# test: internal/kubevirt/webhook/TestNamespaces
s/name == "" || len(wrong) > 0 {/name == "" \&\& len(wrong) > 0 {/
