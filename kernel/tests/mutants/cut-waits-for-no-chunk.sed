# SPDX-License-Identifier: Apache-2.0
#
# A cut with a full ledger fails while the only chunk with free pages is locked.
# file: kernel/core/data/truncate.c
# test: reclaim_busy_test
s/if (!lock || vol->hurry || sg_is_settler(vol))/if (true)/
