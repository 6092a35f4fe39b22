# SPDX-License-Identifier: Apache-2.0
#
# A volume that is not staged is published.
# file: csi-driver/internal/csi/node/node.go
# test: internal/csi/driver/TestOnePod
s/if !slices\.Contains(shown, staging) {/if !slices.Contains(shown, staging) \&\& staging == "" {/
