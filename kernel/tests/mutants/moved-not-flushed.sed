# SPDX-License-Identifier: Apache-2.0
#
# With a page cache, tables may be written before the superblock that announces the move.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/return sg_super_write(m->vol, &sb) ?: flush(m);/return sg_super_write(m->vol, \&sb);/
