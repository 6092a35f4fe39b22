# SPDX-License-Identifier: Apache-2.0
#
# The page that was the last one stays in use for ever.
# file: kernel/core/grow.c
# test: grow_test
s/map & ~(1ULL << 63))/map)/
