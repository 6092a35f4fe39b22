# SPDX-License-Identifier: Apache-2.0
#
# Who closes what he has read while the mount is read-only goes on counting as a reader.
# file: kernel/core/sem/sem_open.c
# test: sem_test
s/^		give_cells(vol, sem);$/		if (!sg_may_write(vol))\n			give_cells(vol, sem);/
