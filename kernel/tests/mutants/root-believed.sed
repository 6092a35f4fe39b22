# SPDX-License-Identifier: Apache-2.0
#
# Anything that the root word of the inode file names is accepted as inodes.
# file: kernel/core/check/check_sys.c
# test: check_test
s/^	alone = leads_somewhere(c, which, said, false);$/	alone = leads_somewhere(c, which, said, false) || said;/
