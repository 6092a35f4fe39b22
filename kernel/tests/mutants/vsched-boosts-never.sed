# SPDX-License-Identifier: Apache-2.0
#
# No interrupt leads to a boost.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/v->boost = VS_WANTED;/return false;/
