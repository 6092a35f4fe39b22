# SPDX-License-Identifier: Apache-2.0
#
# A tool stores the superblock as it was before the tool had the volume alone.
# file: kernel/core/base/superblock.c
# test: ring_first_test
s/if (!err \&\& probe.sb.size == vol->sb.size)/if (err > 0)/
