# SPDX-License-Identifier: Apache-2.0
#
# Replay stores the words of a record, but not its log.
# file: kernel/core/journal/tx.c
# test: crash_atomic_test
s/(log ? vol->up->replay_log(&r, a->word + n, log, seqs) : 0) ?:/(log ? 0 : 0) ?:/
