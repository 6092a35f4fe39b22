# SPDX-License-Identifier: Apache-2.0
#
# Whatever the root word of the inode file names is taken for inodes.
# file: kernel/core/check_sys.c
# test: check_test
s/^	alone = stands_alone(c, which, said);$/	alone = stands_alone(c, which, said) || said;/
