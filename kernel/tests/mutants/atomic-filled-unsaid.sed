# SPDX-License-Identifier: Apache-2.0
#
# An atomic write that fills a hole, and then finds bad memory, does not report the filled hole.
# file: kernel/core/data/atomic.c
# test: crash_paused_test
s/w->fills && (!err || err == -EIO);/w->fills \&\& !err;/
