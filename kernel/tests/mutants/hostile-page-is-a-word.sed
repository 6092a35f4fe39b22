# SPDX-License-Identifier: Apache-2.0
#
# Pages are read again as often as a word, while another system changes the counter.
# file: kernel/core/inode/xattr_blob.c
# test: hostile
s/turn += 1 + (u32)b->pages \* SG_READ_PAGE/turn++/
