# SPDX-License-Identifier: Apache-2.0
#
# A search for a backup superblock loads it through the mapping of a sparse file.
# file: kernel/core/base/superblock.c
# test: holes_test
s/sg_os_peek(&sb, /memcpy(\&sb, /
