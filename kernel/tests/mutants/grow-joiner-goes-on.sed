# SPDX-License-Identifier: Apache-2.0
#
# A joiner continues although the volume has grown beyond its memory.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/^\(\tif (SG_SIZE_OF(grow) <= sg_bound(vol) || \)!grower_lives(vol))/\1grow)/
