# SPDX-License-Identifier: Apache-2.0
#
# Settling waits for inodes that another system has locked.
# file: kernel/core/deferred/ledger_settle.c
# test: systems_opens_test
/^static bool is_busy/,/^}/s/sg_is_locked(.*;$/vol->slot < 0;/
