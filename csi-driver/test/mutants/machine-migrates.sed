# SPDX-License-Identifier: Apache-2.0
#
# A VM with volumes may migrate.
# file: csi-driver/internal/kubevirt/webhook/review.go
# test: internal/kubevirt/webhook/TestOthers
s/if _, has := m\.Annotations\[annotation\.Annotation(r\.cluster\.Driver)\]; has {/if _, has := m.Annotations[annotation.Annotation(r.cluster.Driver)]; has \&\& m.Name == "" {/
