# SPDX-License-Identifier: Apache-2.0
#
# The author of a pod can set the owner of an inline volume.
# file: csi-driver/internal/csi/request/parameters.go
# test: internal/csi/request/TestInlineParameters
s/if _, ok := said\[name\]; ok {/if _, ok := said[name]; ok \&\& name == "" {/
