# SPDX-License-Identifier: Apache-2.0
#
# No joiner fences another one that died while it recovered a slot in its own name.
# file: kernel/core/member/fence.c
# test: systems_death_test
/^static u64 slots_without_guard(/,/^}/s/recovers_itself(i, slot.state) ||/false ||/
