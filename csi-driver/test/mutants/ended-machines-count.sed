# SPDX-License-Identifier: Apache-2.0
#
# A VM that has ended keeps its exclusive claim.
# file: csi-driver/internal/kubevirt/webhook/lists.go
# test: internal/kubevirt/webhook/TestTwins
s/if len(claims) == 0 || l\.over() {/if len(claims) == 0 {/
