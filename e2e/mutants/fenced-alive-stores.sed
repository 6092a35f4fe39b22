# SPDX-License-Identifier: Apache-2.0
#
# Who is fenced alive keeps the pages that it has.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static int revoke(/,/^}/s/unmap_mapping_range(mapping, 0, 0, 0);/(void)mapping;/
