# SPDX-License-Identifier: Apache-2.0
#
# Pages are read anew as often as a word, while somebody goes on changing the counter.
# file: kernel/core/inode/xattr_blob.c
# test: hostile
s/turn += 1 + (u32)b->pages \* SG_READ_PAGE/turn++/
