# SPDX-License-Identifier: Apache-2.0
#
# An unfinished change is reported as damage although its system's heartbeat has stopped.
# file: kernel/core/inode/seqread.c
# test: crash_paused_test
/^static bool seqread_counts/,/^}/s/return heart_beats(vol, w, word, now);/return heart_beats(vol, w, word, now) || true;/
