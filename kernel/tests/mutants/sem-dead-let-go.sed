# SPDX-License-Identifier: Apache-2.0
#
# What a dead system owned is had before its journal has been replayed.
# file: kernel/core/sem/sem_member.c
# test: sem_test
s/return SG_SLOT_STATE(state) != SG_SLOT_FREE \&\& SG_SLOT_INC(state) == inc;/return SG_SLOT_STATE(state) == SG_SLOT_LIVE \&\& SG_SLOT_INC(state) == inc;/
