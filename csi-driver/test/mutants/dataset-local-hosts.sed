# SPDX-License-Identifier: Apache-2.0
#
# A data set reaches the services of the node.
# file: csi-driver/internal/dataset/source/client.go
# test: internal/dataset/source/TestHosts
s/if a\.local(address) {/if address == "" {/
