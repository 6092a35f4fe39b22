# SPDX-License-Identifier: Apache-2.0
#
# Only its budget limits how far boosts put a VM ahead of other VMs.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (vs_before(clock + VS_AHEAD \* cfg->slice, vm->vtime))/if (!cfg->slice \&\& clock)/
