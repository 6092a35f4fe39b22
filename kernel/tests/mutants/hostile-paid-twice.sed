# SPDX-License-Identifier: Apache-2.0
#
# The debt of an inode is paid by all who see it at once.
# file: kernel/core/journal/ledger.c
# test: hostile
/ours = /s/e->state == OWED && e->word == word/e->word || word/
s/^\t\te->state = PAYING;/\t\te->state = OWED;/
