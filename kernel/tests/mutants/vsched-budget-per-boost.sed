# SPDX-License-Identifier: Apache-2.0
#
# Boosts that run at the same time each get the complete budget.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/VS_ADD(vm->spent, length);/(void)length;/
