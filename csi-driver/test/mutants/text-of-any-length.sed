# SPDX-License-Identifier: Apache-2.0
#
# The annotation may have any length.
# file: csi-driver/internal/kubevirt/annotation/claims.go
# test: internal/kubevirt/annotation/TestParse
s/if len(value) > maxText {/if len(value) > maxText<<10 {/
