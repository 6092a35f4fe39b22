# SPDX-License-Identifier: Apache-2.0
#
# The host's processor follows tables of any volume.
# file: kernel/module/map.c
# scenario: hostsplice
# maps: walk
/^static bool splice_allowed(/,/^}/s/return boot_cpu_has(X86_FEATURE_HYPERVISOR) ||/return true ||/
