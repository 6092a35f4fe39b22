# SPDX-License-Identifier: Apache-2.0
#
# A change counter left odd is waited for by each reader again.
# file: kernel/core/inode/seqread.c
# test: reader_test
/^static bool is_judged/,/^}/s/return found;/return false;/
