# SPDX-License-Identifier: Apache-2.0
#
# The former last page stays allocated forever.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/map & ~(1ULL << 63))/map)/
