# SPDX-License-Identifier: Apache-2.0
#
# Who joins and waits for a lock acknowledges nothing, for which the lock's holder may wait.
# file: kernel/core/lock/lock.c
# test: systems_epoch_test
/^static int lock_slow/,/^}/{/vol->up->acknowledge(vol);/d}
