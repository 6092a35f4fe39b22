# SPDX-License-Identifier: Apache-2.0
#
# A machine counts as dead when the first of its holders has ended, although others still exist.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void sgfs_machine_gone(/,/^}/s/is_held(fs, machine)/(sgfs_is_held(fs, machine) \&\& false)/
