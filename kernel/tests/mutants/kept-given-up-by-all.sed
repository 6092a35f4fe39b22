# SPDX-License-Identifier: Apache-2.0
#
# A stale file handle frees an inode that its maker still uses.
# file: kernel/core/deferred/evict.c
# test: deferred_test systems_range_test
/^static int evict_locked/,/^}/s/ || sg_ledger_keeps(vol, ref) ||/ ||/
