# SPDX-License-Identifier: Apache-2.0
#
# A volume that has never grown does not say where its backup superblock is while it grows.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
s/^\tnote_size(g->vol, g->from);/\tif (0)\n\t&/
