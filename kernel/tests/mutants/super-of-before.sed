# SPDX-License-Identifier: Apache-2.0
#
# A tool stores the superblock in the state from before its exclusive access.
# file: kernel/core/base/superblock.c
# test: ring_first_test
s/if (!err \&\& probe.sb.size == vol->sb.size)/if (err > 0)/
