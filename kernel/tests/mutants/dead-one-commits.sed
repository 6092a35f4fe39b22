# SPDX-License-Identifier: Apache-2.0
#
# Who has been taken for dead between the first word of his change and the last commits it.
# file: kernel/core/journal/tx.c
# test: volume_test
s/^	if (tx->n && !sg_is_ours(vol)) {.*$/	if (0) {/
