# SPDX-License-Identifier: Apache-2.0
#
# A copied page does not get the bytes behind the write.
# file: kernel/core/data/atomic.c
# test: atomic_test
/^static int write_fresh(/,/^}/s/return copy_old(w, page, off, 0, in) ?:/return copy_old(w, page, off, 0, in) ?: n ? 0 :/
