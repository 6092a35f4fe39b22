# SPDX-License-Identifier: Apache-2.0
#
# A second lock of a recursive mutex is counted, although another thread has the mutex by now.
# file: kernel/core/sem/sem_mutex.c
# test: hostile
s/return (sg_load64_acquire(&w->word) & SG_SEMW_OWNER) == me &&/return me \&\&/
