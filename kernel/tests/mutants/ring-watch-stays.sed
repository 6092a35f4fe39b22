# SPDX-License-Identifier: Apache-2.0
#
# A watch that has found a record stays among the waiters, so each sender calls its kernel.
# file: kernel/core/sem/sem_watch.c
# test: ring_watch_test
s/^	if (ready \&\& !w->edge)$/	if (ready \&\& w->room)/
