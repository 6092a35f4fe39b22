# SPDX-License-Identifier: Apache-2.0
#
# A repeated punch begins at its start again, and erases data that was written meanwhile.
# file: kernel/core/data/truncate.c
# test: lock_test
s/\*pos = \(end\|page << SG_PAGE_SHIFT\);/(void)pos;/
