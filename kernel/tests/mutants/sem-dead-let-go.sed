# SPDX-License-Identifier: Apache-2.0
#
# Locks of a dead system can be taken before its journal has been replayed.
# file: kernel/core/sem/sem_member.c
# test: sem_test
s/return SG_SLOT_STATE(state) != SG_SLOT_FREE \&\& SG_SLOT_INC(state) == inc;/return SG_SLOT_STATE(state) == SG_SLOT_LIVE \&\& SG_SLOT_INC(state) == inc;/
