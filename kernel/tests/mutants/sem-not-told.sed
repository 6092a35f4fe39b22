# SPDX-License-Identifier: Apache-2.0
#
# A thread that gets the lock of a dead owner does not get EOWNERDEAD.
# file: kernel/core/sem/sem_mutex.c
# test: sem_test
s/^\t\tdied = SG_SEMW_DIED;/\t\tdied = 0;/
