# SPDX-License-Identifier: Apache-2.0
#
# A lock that a thread of this system holds for long is reported as a wild store.
# file: kernel/core/lock/lock.c
# test: lock_test
/^static bool take_stray/,/^}/s/if (!sg_load64(held(vol, w->off)))/if (vol->held)/
