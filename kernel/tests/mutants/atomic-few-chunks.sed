# SPDX-License-Identifier: Apache-2.0
#
# An atomic write locks no more chunks than any other transaction.
# file: kernel/core/data/atomic.c
# test: atomic_test
/tx->most_locks = SG_TX_LOCKS;/d
