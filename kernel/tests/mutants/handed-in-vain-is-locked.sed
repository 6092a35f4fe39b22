# SPDX-License-Identifier: Apache-2.0
#
# A lock that was handed to a waiter after it gave up counts as locked forever.
# file: kernel/core/lock/lock.c
# test: lock_test
/^bool sg_is_locked(/,/^}/s/if (handed_in_vain(sg_at(vol, off), word))/if (0)/
