# SPDX-License-Identifier: Apache-2.0
#
# A joiner that was paused stores its identity in a slot that another system has taken meanwhile.
# file: kernel/core/member/join.c
# test: crash_join_test
s/if (seen == val || !sg_is_ours(vol))/if (seen == val || !vol)/
