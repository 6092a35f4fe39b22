# SPDX-License-Identifier: Apache-2.0
#
# A system acknowledges an epoch in the middle of a transaction.
# file: kernel/core/journal/epoch.c
# test: systems_epoch_test
/^static bool transactions_over/,/^}/s/return false;/return true;/
