# SPDX-License-Identifier: Apache-2.0
#
# Records that another system has freed are never taken, so each new file extends the inode file.
# file: kernel/core/inode/inode_record.c
# test: surplus_test
s/if (steal_surplus(tx, stolen))/if (0 \&\& steal_surplus(tx, stolen))/
