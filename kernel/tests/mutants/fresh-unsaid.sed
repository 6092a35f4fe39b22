# SPDX-License-Identifier: Apache-2.0
#
# A rename does not make the new name durable before its record.
# file: kernel/core/dir/dir_bucket.c
# test: crash_cost_test
/^	sg_tx_fresh(tx);$/d
