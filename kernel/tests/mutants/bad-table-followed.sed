# SPDX-License-Identifier: Apache-2.0
#
# A table in bad memory is looked into.
# file: kernel/core/table/table.c
# test: bad_test
s/sg_is_bad(b.bad, x - b.bad->sb.phys, 1);/!x;/
