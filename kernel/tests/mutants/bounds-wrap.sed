# SPDX-License-Identifier: Apache-2.0
#
# In a volume with less room than a large leaf, a large leaf may point to any memory.
# file: kernel/core/table/table.c
# test: table_test
s/(bytes == SG_PAGE || bytes <= b.room)/true/
