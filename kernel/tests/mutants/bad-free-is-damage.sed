# SPDX-License-Identifier: Apache-2.0
#
# The engine reports a free inode record in bad memory as damage of its list.
# file: kernel/core/inode/inode_record.c
# test: bad_test
/^	err = sg_iref(tx->vol, ino, ref);/{n;s/.*/	if (err == 1)/}
