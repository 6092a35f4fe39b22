# SPDX-License-Identifier: Apache-2.0
#
# A system that was fenced between the first and the last word of a change commits the change.
# file: kernel/core/journal/tx.c
# test: volume_test
s/^	if (tx->n && !sg_is_ours(vol)) {.*$/	if (0) {/
