# SPDX-License-Identifier: Apache-2.0
#
# The record is cleared before its words are stored in place.
# file: kernel/core/journal/tx.c
# test: crash_test
/^int sg_tx_commit/,/^}/{/^\t\tapply(tx);$/d;s/^\t\tmake_invalid(tx->a);$/\t\tmake_invalid(tx->a);\n\t\tapply(tx);/}
