# SPDX-License-Identifier: Apache-2.0
#
# Weights have no effect.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/VS_ADD(vm->vtime, ran \* VS_WEIGHT \/ weight);/VS_ADD(vm->vtime, weight ? ran : 0);/
