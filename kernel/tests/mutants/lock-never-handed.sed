# SPDX-License-Identifier: Apache-2.0
#
# A lock is never handed to a waiter, even after a long wait.
# file: kernel/core/lock/lock.c
# test: lock_test
/^void sg_unlock(/,/^}/s/SG_LOCK_ASKED/SG_LOCK_DOUBT/
