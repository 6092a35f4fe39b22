# SPDX-License-Identifier: Apache-2.0
#
# Who joins recovers before it has looked how large the volume is.
# file: kernel/core/member/join.c
# test: grow_test
/^static int recover_and_follow/,/^}/s/= sg_size_join(vol);/= 0;/
