# SPDX-License-Identifier: Apache-2.0
#
# A VM may use the time for which it slept later.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (VS_ADD(vm->active, 1) == 0 && vs_before(vm->vtime, least))/if (VS_ADD(vm->active, 1) == 0 \&\& !least)/
