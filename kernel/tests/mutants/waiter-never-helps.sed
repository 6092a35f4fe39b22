# SPDX-License-Identifier: Apache-2.0
#
# Who waits for a lock of the dead only waits.
# file: kernel/core/lock/lock.c
# test: systems_death_test
/^static int lock_slow/,/^}/{/sg_help(vol, word);/d}
