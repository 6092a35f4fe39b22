# SPDX-License-Identifier: Apache-2.0
#
# The mark of an object whose system died is removed before the next opener is recorded.
# file: kernel/core/sem/sem_open.c
# test: crash_sem_test
s/^\t\tunclean = begin_anew(vol, s, out);/\t\tif (begin_anew(vol, s, out))\n\t\t\tsg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 0);/
