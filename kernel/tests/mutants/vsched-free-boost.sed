# SPDX-License-Identifier: Apache-2.0
#
# Boosts do not count as time that the VM has used.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/VS_ADD(vm->vtime, ran \* VS_WEIGHT \/ weight);/VS_ADD(vm->vtime, v->boost == VS_BOOSTED ? 0 : ran * VS_WEIGHT \/ weight);/
