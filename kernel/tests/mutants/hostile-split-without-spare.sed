# SPDX-License-Identifier: Apache-2.0
#
# A user's lock that another member has changed is split without a record reserved for that.
# file: kernel/core/filelock/lock_table.c
# test: hostile
s/^	if (left \&\& right \&\& c->spares) {/	if (left \&\& right) {/
s/^		lock_table_put(c->spare\[--c->spares\], \&end);/		lock_table_put(c->spares ? c->spare[--c->spares] : NULL, \&end);/
