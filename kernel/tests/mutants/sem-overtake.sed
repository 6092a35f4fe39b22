# SPDX-License-Identifier: Apache-2.0
#
# A thread that has asked is overtaken all the same.
# file: kernel/core/sem/sem_wait.c
# test: sem_many_test
s/^\tif (!(word \& SG_SEMW_ASKED))/\tif (word | 1)/
