# SPDX-License-Identifier: Apache-2.0
#
# Boosts at the same time each see the whole budget.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/VS_ADD(vm->spent, length);/(void)length;/
