# SPDX-License-Identifier: Apache-2.0
#
# Settling waits for a lock despite a request to stop.
# file: kernel/core/lock/lock.c
# test: systems_opens_test
/^static int lock_slow/,/^}/s/ || sg_wait_ends(vol)//
