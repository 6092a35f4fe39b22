# SPDX-License-Identifier: Apache-2.0
#
# A reader that waits for a paused system does not recover it after it was fenced.
# file: kernel/core/inode/seqread.c
# test: crash_paused_test
/^static int look_until_even/,/^}/s/sg_help(vol, .*$/;/
