# SPDX-License-Identifier: Apache-2.0
#
# A replay stores the words of a record, and not its log.
# file: kernel/core/journal/tx.c
# test: crash_atomic_test
s/(log ? vol->up->replay_log(&r, a->word + n, log, seqs) : 0) ?:/(log ? 0 : 0) ?:/
