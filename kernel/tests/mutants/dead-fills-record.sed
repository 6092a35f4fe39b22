# SPDX-License-Identifier: Apache-2.0
#
# A system fills a record without a last check that the record's list still belongs to it.
# file: kernel/core/inode/inode_record.c
# test: systems_declared_test
/^static int lock_record/,/^}/{
/if (!sg_is_ours(vol))/{n;s/return -EIO;/return 0;/}
}
