# SPDX-License-Identifier: Apache-2.0
#
# A system that leaves only tries its deferred closes once.
# file: kernel/core/sem/sem_open.c
# test: sem_close_test
s/vol->hurry ? CLOSE_HURRY : CLOSE_TRY/CLOSE_TRY/
