# SPDX-License-Identifier: Apache-2.0
#
# Any user may create the pod of a VM.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestPodsThatNameVolumes
s/if k == nil || q\.UserInfo\.Username != "system:serviceaccount:"+k\.Namespace+":"+controllerAccount {/if k == nil {/
