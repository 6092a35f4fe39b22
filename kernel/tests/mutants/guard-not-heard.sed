# SPDX-License-Identifier: Apache-2.0
#
# A guard that still moves does not keep its machine alive.
# file: kernel/core/member/fence.c
# test: systems_death_test
/^static u64 beat_of/,/^}/s/guarded ? sg_load64(&s->guard) : 0/guarded ? 0 : 0/
