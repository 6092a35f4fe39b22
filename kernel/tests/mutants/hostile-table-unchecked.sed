# SPDX-License-Identifier: Apache-2.0
#
# A table is read before the check that the page is a table.
# file: kernel/core/table/table.c
# test: hostile
s/p.level != 2 || !is_table(bounds_of(vol), p.e))/p.level != 2)/
