# SPDX-License-Identifier: Apache-2.0
#
# A record's head is loaded once for the check, and again for its use.
# file: kernel/core/journal/tx.c
# test: hostile
s/seqs = SG_MIN(n, SG_AREA_SEQ_COUNT(head));/seqs = SG_AREA_SEQ_COUNT(sg_load64(\&a->head));/
