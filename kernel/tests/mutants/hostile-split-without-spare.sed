# SPDX-License-Identifier: Apache-2.0
#
# A lock of a user is split as somebody else has made it, though no record was kept for that.
# file: kernel/core/filelock/lock_table.c
# test: hostile
s/^	if (left \&\& right \&\& c->spares) {/	if (left \&\& right) {/
s/^		put(c->spare\[--c->spares\], \&end);/		put(c->spares ? c->spare[--c->spares] : NULL, \&end);/
