# SPDX-License-Identifier: Apache-2.0
#
# With the first of its holders that ends a machine is dead.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void machine_gone(/,/^}/s/is_held(fs, machine)/(is_held(fs, machine) \&\& false)/
