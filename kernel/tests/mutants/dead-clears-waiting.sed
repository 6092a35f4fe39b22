# SPDX-License-Identifier: Apache-2.0
#
# A system that stops waiting clears its slot's bit, although it has been fenced meanwhile.
# file: kernel/core/lock/lock.c
# test: systems_declared_test
/^static int lock_slow/,/^}/s/if (sg_is_ours(vol))/if (true)/
