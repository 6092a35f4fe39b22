# SPDX-License-Identifier: Apache-2.0
#
# An entry that cannot be removed from the ledger is chosen again, for ever.
# file: kernel/core/deferred/reclaim.c
# test: hostile
/^static int write_off/,/^}/s/^	return err;$/	return 0;/
