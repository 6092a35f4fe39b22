# SPDX-License-Identifier: Apache-2.0
#
# fsck does not check whether a name is where a lookup finds it.
# file: kernel/core/check/check_sem.c
# test: check_sem_test
s/^\t       sg_sem_chain(hash) == page % SG_SEM_CHAINS;/\t       sg_sem_chain(hash) + page + 1;/
