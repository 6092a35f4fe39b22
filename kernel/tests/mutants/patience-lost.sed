# SPDX-License-Identifier: Apache-2.0
#
# Who has judged often is hasty for good.
# file: kernel/core/inode/seqread.c
# test: crash_paused_test
s/> CALM_NS/> (~0ULL >> 1)/
