# SPDX-License-Identifier: Apache-2.0
#
# A collapse builds its tables in the pages of another file, which now has the spare inode's number.
# file: kernel/core/data/collapse.c
# test: systems_range_test
/^static int pool_next_run/,/^}/s/!sg_is_same(p->vol, &p->spare)/false/
