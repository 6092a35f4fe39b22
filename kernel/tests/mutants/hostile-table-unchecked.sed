# SPDX-License-Identifier: Apache-2.0
#
# A table is read before it is checked that it is one.
# file: kernel/core/table/table.c
# test: hostile
s/p.level != 2 || !is_table(bounds_of(vol), p.e))/p.level != 2)/
