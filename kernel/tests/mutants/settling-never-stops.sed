# SPDX-License-Identifier: Apache-2.0
#
# Settling that has been told to stop still waits for a lock.
# file: kernel/core/lock/lock.c
# test: systems_opens_test
/^static int lock_slow/,/^}/s/ || sg_wait_ends(vol)//
