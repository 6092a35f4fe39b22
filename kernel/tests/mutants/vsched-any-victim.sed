# SPDX-License-Identifier: Apache-2.0
#
# The victim may belong to another VM.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/base = x & ~(VS_VM_VCPUS - 1)/base = 1 * VS_VM_VCPUS/
