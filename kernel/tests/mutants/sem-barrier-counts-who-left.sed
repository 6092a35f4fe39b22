# SPDX-License-Identifier: Apache-2.0
#
# A thread that stops waiting at a barrier counts as arrived.
# file: kernel/core/sem/sem_event.c
# test: sem_test
/^static void sem_event_withdraw(/,/^}/s/sg_load64(count) - 1);/sg_load64(count));/
