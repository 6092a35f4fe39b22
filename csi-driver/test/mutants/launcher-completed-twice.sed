# SPDX-License-Identifier: Apache-2.0
#
# Each review of a pod completes the pod again.
# file: csi-driver/internal/kubevirt/webhook/mutate.go
# test: internal/kubevirt/webhook/TestLauncher
s/if asked(pod, wanted) {/if asked(pod, wanted) \&\& at < 0 {/
