# SPDX-License-Identifier: Apache-2.0
#
# A machine that is fenced keeps what was opened to it as identity memory.
# file: kernel/module/region_holders.c
# scenario: kvm-identity
# maps: walk
/^static int sgfs_region_holders_revoke(/,/^}/s/sgfs_identity_revoke_held(fs, was->machine);/(void)fs;/
