# SPDX-License-Identifier: Apache-2.0
#
# The driver publishes a volume that is not staged.
# file: csi-driver/internal/csi/node/node.go
# test: internal/csi/driver/TestOnePod
s/if !slices\.Contains(shown, staging) {/if !slices.Contains(shown, staging) \&\& staging == "" {/
