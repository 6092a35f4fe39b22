# SPDX-License-Identifier: Apache-2.0
#
# A system that is fenced in the last step of a log still stores the words of its record.
# file: kernel/core/data/redo.c
# test: crash_paused_test
/^static int log_apply(/,/^}/s/if (!sg_is_ours(tx->vol))$/if (!tx->vol)/
