# SPDX-License-Identifier: Apache-2.0
#
# The owner of a mutex is checked once, and the mutex is unlocked even if it has another owner by
# then.
# file: kernel/core/sem/sem_mutex.c
# test: hostile
/^int sg_sem_unlock/,/^}/{
/^\tdo {/,/^\t} while/s/if ((word & SG_SEMW_OWNER) != c->me)/if (0)/
}
