# SPDX-License-Identifier: Apache-2.0
#
# An object whose system died loses that mark before its next opener is noted.
# file: kernel/core/sem/sem_open.c
# test: crash_sem_test
s/^\t\tunclean = begin_anew(vol, s, out);/\t\tif (begin_anew(vol, s, out))\n\t\t\tsg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 0);/
