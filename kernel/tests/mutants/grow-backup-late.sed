# SPDX-License-Identifier: Apache-2.0
#
# The volume has grown before any superblock has the new size.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
s/make_last(g) ?:$/commit_locked(g) ?:/
s/^\t      commit_locked(g);$/\t      make_last(g);/
