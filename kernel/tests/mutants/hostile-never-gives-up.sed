# SPDX-License-Identifier: Apache-2.0
#
# A thread that releases a lock waits for ever for another lock.
# file: kernel/core/lock/lock.c
# test: hostile
s/return lock_limited(vol, off, false, SURE_NS);/return lock_limited(vol, off, false, ~0ULL);/
