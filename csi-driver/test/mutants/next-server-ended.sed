# SPDX-License-Identifier: Apache-2.0
#
# A call that ends the server of a volume without pods ends the next server of that volume.
# file: csi-driver/internal/publish/file.go
# test: internal/publish/TestEndsOnlyThatServer
s/if f\.ending\[name\] > 0 {/if false {/
