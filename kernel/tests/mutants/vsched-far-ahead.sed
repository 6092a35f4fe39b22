# SPDX-License-Identifier: Apache-2.0
#
# Boosts advance a VM before the others as far as its budget allows.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (vs_before(clock + VS_AHEAD \* cfg->slice, vm->vtime))/if (!cfg->slice \&\& clock)/
