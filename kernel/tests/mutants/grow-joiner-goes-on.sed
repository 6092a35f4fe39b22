# SPDX-License-Identifier: Apache-2.0
#
# Who joins while the volume grows beyond its memory goes on.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/^\(\tif (SG_SIZE_OF(grow) <= sg_bound(vol) || \)!sg_is_locked(vol, SG_HOT(grow_lock)))/\1grow)/
