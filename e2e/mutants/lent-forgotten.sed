# SPDX-License-Identifier: Apache-2.0
#
# The module ignores pages of the file region that a process has pinned, but does not map.
# file: kernel/module/region_pins.c
# scenario: region
# maps: walk
/^bool sgfs_is_lent(/,/^}/s/return true;/return false;/
