# SPDX-License-Identifier: Apache-2.0
#
# A recoverer that was fenced clears a record of the slot's next owner.
# file: kernel/core/journal/tx.c
# test: recoverer_late_test
s/if (head \&\& sg_cas64(&a->head, head, 0) == head) {/sg_store64(\&a->head, 0);\n\tif (head) {/
