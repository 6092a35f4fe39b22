# SPDX-License-Identifier: Apache-2.0
#
# A joiner recovers before it has checked the volume's size.
# file: kernel/core/member/join.c
# test: grow_test
/^static int recover_and_follow/,/^}/s/= sg_size_join(vol);/= 0;/
