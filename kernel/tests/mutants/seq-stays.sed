# SPDX-License-Identifier: Apache-2.0
#
# An inode changes, but its change counter does not.
# file: kernel/core/journal/tx.c
# test: model_test
s/put(tx, seq_off(tx->inode\[i\]), (sg_get(tx->vol, seq_off(tx->inode\[i\])) | 1) + 1);/put(tx, seq_off(tx->inode[i]), sg_get(tx->vol, seq_off(tx->inode[i])));/
