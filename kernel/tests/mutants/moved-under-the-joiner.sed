# SPDX-License-Identifier: Apache-2.0
#
# One who opened the volume before it was moved joins it after that.
# file: kernel/core/super.c
# test: relocate_test
s/^	return super_stands(vol) ? 0 :$/	return super_stands(vol) || 1 ? 0 :/
