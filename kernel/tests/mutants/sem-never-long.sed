# SPDX-License-Identifier: Apache-2.0
#
# A thread that waits for another system sleeps immediately.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/if (err == -EAGAIN && may_come(w))/if (0)/
