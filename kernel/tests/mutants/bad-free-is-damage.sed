# SPDX-License-Identifier: Apache-2.0
#
# A free inode record in bad memory is taken for damage of the list that it is on.
# file: kernel/core/inode/inode_record.c
# test: bad_test
/^	err = sg_iref(tx->vol, ino, ref);/{n;s/.*/	if (err == 1)/}
