# SPDX-License-Identifier: Apache-2.0
#
# Each reader waits again for a change counter that was left odd.
# file: kernel/core/inode/seqread.c
# test: reader_test
/^static bool is_judged/,/^}/s/return found;/return false;/
