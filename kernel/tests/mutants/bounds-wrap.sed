# SPDX-License-Identifier: Apache-2.0
#
# A volume with room for less than a large leaf lets such a leaf name any memory.
# file: kernel/core/table/table.c
# test: table_test
s/(bytes == SG_PAGE || bytes <= b.room)/true/
