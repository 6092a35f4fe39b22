# SPDX-License-Identifier: Apache-2.0
#
# With the first of its holders that ends a machine is dead.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void sgfs_machine_gone(/,/^}/s/is_held(fs, machine)/(sgfs_is_held(fs, machine) \&\& false)/
