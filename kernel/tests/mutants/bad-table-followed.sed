# SPDX-License-Identifier: Apache-2.0
#
# A walk reads a table in bad memory.
# file: kernel/core/table/table.c
# test: bad_test
s/sg_is_bad(b.bad, x - b.bad->sb.phys, 1);/!x;/
