# SPDX-License-Identifier: Apache-2.0
#
# The copied bytes of a page are not written back before the page is in the file.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
/^static SG_NOINLINE int copy_old(/,/^}/s/sg_fresh_write(w->vol, off + in, step, n);/sg_os_write(sg_at(w->vol, off + in), step, n);/
