# SPDX-License-Identifier: Apache-2.0
#
# A debt says that more of a page has been paid than there is in a page.
# file: kernel/core/check/check_dir.c
# test: hostile
s/if (first >= SG_TABLE_ENTRIES)/if (first > 4096)/
