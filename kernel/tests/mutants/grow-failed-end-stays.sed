# SPDX-License-Identifier: Apache-2.0
#
# The backup superblock of a growth that a death has ended stays.
# file: kernel/core/member/volume_grow.c
# test: grow_death_test
s/sg_cas64(magic, SG_MAGIC, 0) != SG_MAGIC/true/
