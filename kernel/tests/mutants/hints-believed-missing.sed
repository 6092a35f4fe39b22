# SPDX-License-Identifier: Apache-2.0
#
# Without hints, a system reports that there is no space.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/ || take_last(tx, want, off, got))/ || (tx->err \&\& take_last(tx, want, off, got)))/
