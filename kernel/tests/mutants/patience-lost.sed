# SPDX-License-Identifier: Apache-2.0
#
# A system that has often reported damage waits too briefly afterwards.
# file: kernel/core/inode/seqread.c
# test: crash_paused_test
s/> CALM_NS/> (~0ULL >> 1)/
