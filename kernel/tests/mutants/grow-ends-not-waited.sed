# SPDX-License-Identifier: Apache-2.0
#
# Operations with the old bound may be in progress when the new part is used.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/ ?: wait_for_ends(g, end) ?: / ?: /;/^static int wait_for_ends/i static int wait_for_ends(struct growth *g, u64 end) __attribute__((unused));
