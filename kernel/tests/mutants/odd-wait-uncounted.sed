# SPDX-License-Identifier: Apache-2.0
#
# A wait for the end of another system's change is not counted, so a freeze waits for the waiting
# call.
# file: kernel/core/inode/seqread.c
# test: freeze_test
/sg_long_wait_look(/d
