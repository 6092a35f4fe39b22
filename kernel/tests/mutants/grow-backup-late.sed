# SPDX-License-Identifier: Apache-2.0
#
# The volume has grown before a superblock has the new size.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
s/^\terr = make_chunks(g) ?: make_last(g);/\terr = make_chunks(g);/
/^static int volume_grow_to(/,/^}/s/^\tsg_follow(g->vol);$/\tmake_last(g);\n&/
