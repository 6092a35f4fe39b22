# SPDX-License-Identifier: Apache-2.0
#
# A joiner that was paused says who it is in a slot that is another one's by then.
# file: kernel/core/member/join.c
# test: crash_join_test
s/if (seen == val || !sg_is_ours(vol))/if (seen == val || !vol)/
