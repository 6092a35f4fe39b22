# SPDX-License-Identifier: Apache-2.0
#
# A pod gets a mount that was marked for a VM.
# file: csi-driver/internal/publish/dax.go
# test: internal/publish/TestMemoryForMachines
s/&& (o\.Machine || !mounts\.Marked(at)) {/\&\& at != nil {/
