# SPDX-License-Identifier: Apache-2.0
#
# Removing an object also removes it for its users.
# file: kernel/core/sem/sem_table.c
# test: sem_names_test
s/else if (sg_sem_is_used(vol, \&q.found))/else if (vol->size \& 1)/
