# SPDX-License-Identifier: Apache-2.0
#
# A system that opened the volume before a move joins it afterwards.
# file: kernel/core/base/superblock.c
# test: relocate_test
s/^	if (super_stands(vol))$/	if (super_stands(vol) || 1)/
