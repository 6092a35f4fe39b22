# SPDX-License-Identifier: Apache-2.0
#
# A review chooses the path of a request to the API server.
# file: csi-driver/internal/kubevirt/webhook/lists.go
# test: internal/kubevirt/webhook/TestNamespaces
s/name == "" || len(wrong) > 0 {/name == "" \&\& len(wrong) > 0 {/
