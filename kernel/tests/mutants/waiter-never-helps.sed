# SPDX-License-Identifier: Apache-2.0
#
# A thread that waits for a lock of a dead system does not recover it.
# file: kernel/core/lock/lock.c
# test: systems_death_test
/^static int lock_slow/,/^}/{/sg_help(vol, word);/d}
