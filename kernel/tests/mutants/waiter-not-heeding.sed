# SPDX-License-Identifier: Apache-2.0
#
# A joiner that waits for a lock does not acknowledge epochs, although the lock's holder may wait
# for that.
# file: kernel/core/lock/lock.c
# test: systems_epoch_test
/^static int lock_slow/,/^}/{/vol->up->acknowledge(vol);/d}
