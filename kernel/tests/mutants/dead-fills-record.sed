# SPDX-License-Identifier: Apache-2.0
#
# A record is filled without a last look whether the list that it is from is still ours.
# file: kernel/core/inode.c
# test: systems_declared_test
/^int sg_inode_take/,/^}/s/if (!sg_is_ours(tx->vol)) {/if (0) {/
