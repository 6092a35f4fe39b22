# SPDX-License-Identifier: Apache-2.0
#
# A replaced page is free immediately, though another system may still read it (D7).
# file: kernel/core/data/atomic.c
# test: atomic_test
/^static int switch_pages(/,/^}/s/sg_defer_run(tx, run, pages)/(void)sg_give_run(tx, run, pages)/
