# SPDX-License-Identifier: Apache-2.0
#
# Other threads overtake a thread that has requested its turn.
# file: kernel/core/sem/sem_wait.c
# test: sem_many_test
s/^\tif (!(word \& SG_SEMW_ASKED))/\tif (word | 1)/
