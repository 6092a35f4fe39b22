# SPDX-License-Identifier: Apache-2.0
#
# Two pods get a volume that is ReadWriteOncePod.
# file: csi-driver/internal/csi/node/node.go
# test: internal/csi/driver/TestOnePod
s/if path != staging && path != target {/if path != staging \&\& path == "" {/
