# SPDX-License-Identifier: Apache-2.0
#
# While another system changes the counter, pages are read again as often as a single word.
# file: kernel/core/inode/xattr_blob.c
# test: hostile
s/turn += 1 + (u32)b->pages \* SG_READ_PAGE/turn++/
