# SPDX-License-Identifier: Apache-2.0
#
# A system that has not detected the growth writes the copy of a root word at the old place.
# file: kernel/core/inode/inode_backup.c
# test: grow_test
/^\ttx->vol->up->follow(tx->vol);/d
