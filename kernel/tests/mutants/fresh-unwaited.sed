# SPDX-License-Identifier: Apache-2.0
#
# A transaction with a plain part does not wait for its fresh bytes.
# file: kernel/core/journal/tx.c
# test: crash_cost_test
s/^	if (!tx->plain || tx->fresh)$/	if (!tx->plain)/
