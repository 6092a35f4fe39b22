# SPDX-License-Identifier: Apache-2.0
#
# The host allows map=splice for any volume, so its processor follows the volume's tables.
# file: kernel/module/region_holders.c
# scenario: hostsplice
# maps: walk
/^static bool sgfs_region_holders_may_splice(/,/^}/s/(boot_cpu_has(X86_FEATURE_HYPERVISOR) \&\&/(true \&\&/
