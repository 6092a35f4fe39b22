# SPDX-License-Identifier: Apache-2.0
#
# Who joins takes back what the slot's last owner had open, and nobody knows that it died.
# file: kernel/core/sem/sem_list.c
# test: sem_test
s/^\t\tsg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 1);//
