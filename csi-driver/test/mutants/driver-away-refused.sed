# SPDX-License-Identifier: Apache-2.0
#
# A VM is refused while the driver of its node is exchanged.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestDriverIsExchanged
s/!served && !had {/!served \&\& (!had || had) {/
