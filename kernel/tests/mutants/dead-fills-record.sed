# SPDX-License-Identifier: Apache-2.0
#
# A record is filled without a last look whether the list that it is from is still ours.
# file: kernel/core/inode/inode_record.c
# test: systems_declared_test
/^static int lock_record/,/^}/{
/if (!sg_is_ours(vol))/{n;s/return -EIO;/return 0;/}
}
