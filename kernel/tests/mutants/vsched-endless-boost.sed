# SPDX-License-Identifier: Apache-2.0
#
# A boost is as long as the rest of the budget.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (length > cfg->boost)/if (0)/
