# SPDX-License-Identifier: Apache-2.0
#
# An entry does not say to which base it belongs: where the ranges overlap, it is moved twice.
# file: kernel/core/volume/relocate.c
# test: crash_relocate_test
s/is = (is - sb->phys + sb->move_to) | SG_PTE_MOVED;/is = is - sb->phys + sb->move_to;/
