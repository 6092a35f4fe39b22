# SPDX-License-Identifier: Apache-2.0
#
# Readers of a former system still count after another system has got its slot.
# file: kernel/core/sem/sem_open.c
# test: sem_test
/^bool sg_sem_cell_counts/,/^}/ s/ \&\& SG_SLOT_INC(state) == SG_LOCK_INC(own);/;/
