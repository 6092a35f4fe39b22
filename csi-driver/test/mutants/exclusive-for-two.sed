# SPDX-License-Identifier: Apache-2.0
#
# Two VMs get a ReadWriteOnce claim.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestTwoAtOnce
s/if o\.readersOnly() || o\.is(corev1\.ReadWriteMany) {/if o.driver != "" {/
