# SPDX-License-Identifier: Apache-2.0
#
# A joiner closes the objects that the slot's last owner had open, without a record of that owner's
# death.
# file: kernel/core/sem/sem_list.c
# test: sem_test
s/^\t\tsg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 1);//
