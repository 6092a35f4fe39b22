# SPDX-License-Identifier: Apache-2.0
#
# Growth does not wait for answers of other systems.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/^\(\terr = \)wait_for_answers(g, end) ?: /\1/;/^static int wait_for_answers/i static int wait_for_answers(struct growth *g, u64 end) __attribute__((unused));
