# SPDX-License-Identifier: Apache-2.0
#
# A caller that stops waiting at a barrier waits forever for the barrier's lock.
# file: kernel/core/lock/lock.c
# test: hostile
s/return lock_limited(vol, off, false, SURE_NS);/return lock_limited(vol, off, false, ~0ULL);/
