# SPDX-License-Identifier: Apache-2.0
#
# A victim on the same processor is not preferred.
# file: kernel/vsched/policy.h
# test: vsched_policy_test
s/if (all\[at\]\.cpu == cpu) {/if (cpu < 0) {/
