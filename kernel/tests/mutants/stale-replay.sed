# SPDX-License-Identifier: Apache-2.0
#
# A record stays valid after replay: it is replayed again, over newer words.
# file: kernel/core/tx.c
# test: crash_test
/^int sg_tx_replay/,/^}/{/if (sg_load64(&a->head))/{N;d}}
