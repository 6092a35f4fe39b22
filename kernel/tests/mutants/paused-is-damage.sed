# SPDX-License-Identifier: Apache-2.0
#
# A change that does not end is judged although its system's heart stands still.
# file: kernel/core/inode/seqread.c
# test: crash_paused_test
/^static bool counts/,/^}/s/return heart_beats(vol, w, word, now);/return true;/
