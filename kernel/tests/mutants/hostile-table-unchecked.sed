# SPDX-License-Identifier: Apache-2.0
#
# A table is looked into before it is known to be one.
# file: kernel/core/table/table.c
# test: hostile
s/p.level != 2 || !is_table(bounds_of(vol), p.e))/p.level != 2)/
