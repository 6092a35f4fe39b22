# SPDX-License-Identifier: Apache-2.0
#
# Boosts always take the time of the same vCPU.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/vm->last_victim = any & (VS_VM_VCPUS - 1);/(void)0;/
