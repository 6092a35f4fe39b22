# SPDX-License-Identifier: Apache-2.0
#
# A page of region that somebody has, though nobody maps it, is nobody's.
# file: kernel/module/region_pins.c
# scenario: region
# maps: walk
/^bool sgfs_is_lent(/,/^}/s/return true;/return false;/
