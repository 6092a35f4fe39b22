# SPDX-License-Identifier: Apache-2.0
#
# A VM that has slept may later use the time of its sleep.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (VS_ADD(vm->active, 1) == 0 && vs_before(vm->vtime, least))/if (VS_ADD(vm->active, 1) == 0 \&\& !least)/
