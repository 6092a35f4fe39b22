# SPDX-License-Identifier: Apache-2.0
#
# The guard's heartbeat does not count as a sign of life of its machine.
# file: kernel/core/member/fence.c
# test: systems_death_test
/^static u64 beat_of/,/^}/s/guarded ? sg_load64(&s->guard) : 0/guarded ? 0 : 0/
