# SPDX-License-Identifier: Apache-2.0
#
# An entry has no mark of its base: where the ranges overlap, the move adapts the entry twice.
# file: kernel/core/volume/relocate.c
# test: crash_relocate_test
s/is = (is - sb->phys + sb->move_to) | SG_PTE_MOVED;/is = is - sb->phys + sb->move_to;/
