# SPDX-License-Identifier: Apache-2.0
#
# The page that was the last one stays in use for ever.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/map & ~(1ULL << 63))/map)/
