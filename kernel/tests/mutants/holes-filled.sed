# SPDX-License-Identifier: Apache-2.0
#
# A search for a backup superblock reads a sparse file through the mapping, which fills holes.
# file: kernel/core/base/superblock.c
# test: holes_test
s/sg_os_peek(&sb, /memcpy(\&sb, /
