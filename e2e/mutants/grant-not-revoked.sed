# SPDX-License-Identifier: Apache-2.0
#
# A fenced machine keeps its identity memory.
# file: kernel/module/region_holders.c
# scenario: kvm-identity
# maps: walk
/^static int sgfs_region_holders_revoke(/,/^}/s/sgfs_identity_revoke_held(fs, was->machine);/(void)fs;/
