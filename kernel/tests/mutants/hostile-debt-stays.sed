# SPDX-License-Identifier: Apache-2.0
#
# Reclaim chooses the same entry forever, although this entry cannot be removed from the ledger.
# file: kernel/core/deferred/reclaim.c
# test: hostile
/^static int write_off/,/^}/s/^	return err;$/	return 0;/
