# SPDX-License-Identifier: Apache-2.0
#
# A pod is completed again by each review.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestLauncher
s/if asked(pod, wanted) {/if asked(pod, wanted) \&\& at < 0 {/
