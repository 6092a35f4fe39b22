# SPDX-License-Identifier: Apache-2.0
#
# The webhook refuses a VM during an upgrade of the driver on its node.
# file: csi-driver/internal/kubevirt/webhook/validate.go
# test: internal/kubevirt/webhook/TestDriverIsExchanged
s/!served && !had {/!served \&\& (!had || had) {/
