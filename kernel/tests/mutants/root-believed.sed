# SPDX-License-Identifier: Apache-2.0
#
# The checker accepts any pages that the inode file's root word names as inodes.
# file: kernel/core/check/check_sys.c
# test: check_test
s/^	alone = leads_somewhere(c, which, said, false);$/	alone = leads_somewhere(c, which, said, false) || said;/
