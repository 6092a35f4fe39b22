# SPDX-License-Identifier: Apache-2.0
#
# That somebody slept in a system that died is never forgotten.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/^\tif (sg_is_ours(vol))$/\tif (!slot \&\& !vol->size)/
