# SPDX-License-Identifier: Apache-2.0
#
# fsck does not look whether a name is where it can be found.
# file: kernel/core/check/check_sem.c
# test: check_sem_test
s/^\t       sg_sem_chain(hash) == page % SG_SEM_CHAINS;/\t       sg_sem_chain(hash) + page + 1;/
