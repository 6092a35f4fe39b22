# SPDX-License-Identifier: Apache-2.0
#
# Reclaim forever chooses an entry that cannot be removed from the ledger.
# file: kernel/core/deferred/reclaim.c
# test: hostile
/^static int write_off/,/^}/s/^	return err;$/	return 0;/
