# SPDX-License-Identifier: Apache-2.0
#
# A deferred free may say that more of a page has been freed than a page has.
# file: kernel/core/check/check_dir.c
# test: hostile
s/if (first >= SG_TABLE_ENTRIES)/if (first > 4096)/
