# SPDX-License-Identifier: Apache-2.0
#
# A record stays valid after replay: it is replayed again, over newer words.
# file: kernel/core/journal/tx.c
# test: crash_test
/^static int replay_area/,/^}/s/if (head \&\& sg_cas64(&a->head, head, 0) == head) {/if (head \&\& !vol) {/
