# SPDX-License-Identifier: Apache-2.0
#
# A system that is fenced while it stores a log still stores the words of its record.
# file: kernel/core/journal/tx.c
# test: crash_paused_test
s/if (err \&\& !sg_is_ours(vol))$/if (err \&\& !vol)/
