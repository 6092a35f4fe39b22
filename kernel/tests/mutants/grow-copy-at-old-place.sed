# SPDX-License-Identifier: Apache-2.0
#
# Who has not noticed growth writes the copy of a root word where it was.
# file: kernel/core/inode/inode_backup.c
# test: grow_test
/^\ttx->vol->up->follow(tx->vol);/d
