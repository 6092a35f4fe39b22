# SPDX-License-Identifier: Apache-2.0
#
# A system that opened the volume before a move joins it afterwards.
# file: kernel/core/base/superblock.c
# test: relocate_test
/^int sg_super_recheck/,/^}/s/err = sg_super_compare(vol, &probe.sb);/err = 0 \& sg_super_compare(vol, \&probe.sb);/
