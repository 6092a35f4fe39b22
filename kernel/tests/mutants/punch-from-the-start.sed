# SPDX-License-Identifier: Apache-2.0
#
# A punch that comes again begins at its start, and erases what was written meanwhile.
# file: kernel/core/data/truncate.c
# test: lock_test
s/\*pos = \(end\|page << SG_PAGE_SHIFT\);/(void)pos;/
