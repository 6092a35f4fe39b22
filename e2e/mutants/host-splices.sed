# SPDX-License-Identifier: Apache-2.0
#
# The host's processor follows tables of any volume.
# file: kernel/module/region_holders.c
# scenario: hostsplice
# maps: walk
/^static bool sgfs_region_holders_may_splice(/,/^}/s/(boot_cpu_has(X86_FEATURE_HYPERVISOR) \&\&/(true \&\&/
