# SPDX-License-Identifier: Apache-2.0
#
# Who has a recursive mutex again is counted, though it is another one's by then.
# file: kernel/core/sem/sem_mutex.c
# test: hostile
s/return (sg_load64_acquire(&w->word) & SG_SEMW_OWNER) == me &&/return me \&\&/
