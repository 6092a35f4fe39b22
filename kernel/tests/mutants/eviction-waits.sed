# SPDX-License-Identifier: Apache-2.0
#
# Memory reclaim waits for a transaction area that another system has locked.
# file: kernel/core/deferred/evict.c
# test: systems_opens_test
/^int sg_evict_try/,/^}/s/sg_tx_try, false)/sg_tx_begin, false)/
