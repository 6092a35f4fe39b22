# SPDX-License-Identifier: Apache-2.0
#
# A cut waits for a locked chunk to split a large leaf, although zeroing would do as well.
# file: kernel/core/data/truncate.c
# test: reclaim_busy_test
/tx->hasty = true;/d
