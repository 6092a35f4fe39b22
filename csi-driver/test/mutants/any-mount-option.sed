# SPDX-License-Identifier: Apache-2.0
#
# A class may have any mount option.
# file: csi-driver/internal/csi/request/capabilities.go
# test: internal/csi/request/TestMountOptions
s/if !allowed(o) {/if !allowed(o) \&\& o == "" {/
