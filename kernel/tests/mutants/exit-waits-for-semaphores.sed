# SPDX-License-Identifier: Apache-2.0
#
# A process that exits waits for the file of semaphores, once for each of its objects.
# file: kernel/core/sem/sem_open.c
# test: sem_close_test
/^static int lock_file_to_close/,/^}/s/sg_lock_brief(/sg_lock_sure(/
s/first = !vol->sems->closing;/first = true;/
