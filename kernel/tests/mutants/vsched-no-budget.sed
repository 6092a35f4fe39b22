# SPDX-License-Identifier: Apache-2.0
#
# Boosts have no limit: a VM with constant interrupts gets all processors.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/return spent < vm->budget ? vm->budget - spent : 0;/return vm->budget ? cfg->period : spent;/
