# SPDX-License-Identifier: Apache-2.0
#
# A deferred free may count more freed parts of a page than a page has.
# file: kernel/core/check/check_dir.c
# test: hostile
s/if (first >= SG_TABLE_ENTRIES)/if (first > 4096)/
