# SPDX-License-Identifier: Apache-2.0
#
# Several systems that find an entry for an inode at the same time all free that inode.
# file: kernel/core/journal/ledger.c
# test: hostile
/ours = /s/e->state == DEFERRED && e->word == word/e->word || word/
s/^\t\te->state = RECLAIMING;/\t\te->state = DEFERRED;/
