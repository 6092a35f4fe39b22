# SPDX-License-Identifier: Apache-2.0
#
# Boosts take no time from their victims.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/VS_ADD(all\[victim\]\.owes, ran);/VS_ADD(all[victim].owes, 0);/
