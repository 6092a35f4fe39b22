# SPDX-License-Identifier: Apache-2.0
#
# The bit of a sleeper on a dead system is never cleared.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/^\tif (sg_is_ours(vol))$/\tif (!slot \&\& !vol->size)/
