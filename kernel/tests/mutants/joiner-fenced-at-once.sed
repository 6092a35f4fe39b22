# SPDX-License-Identifier: Apache-2.0
#
# A joiner that recovers a slot in its own name is fenced although it sends heartbeats.
# file: kernel/core/member/fence.c
# test: systems_death_test
/^static u64 silent_still(/,/^}/s/beat_of(vol, i, guarded) != beat\[i\]/beat_of(vol, i, guarded) > beat[i] + (1 << 20)/
