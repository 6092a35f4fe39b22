# SPDX-License-Identifier: Apache-2.0
#
# Replay accepts a log that claims more pieces than fit into it.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/if (sg_log_words(count, 0) > n || sg_iref(r->vol, ino, &ref))/if (sg_iref(r->vol, ino, \&ref))/
