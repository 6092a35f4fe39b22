# SPDX-License-Identifier: Apache-2.0
#
# Whose a mutex is is looked at once, and then whatever is there is given back.
# file: kernel/core/sem/sem_mutex.c
# test: hostile
/^int sg_sem_unlock/,/^}/{
/^\tdo {/,/^\t} while/s/if ((word & SG_SEMW_OWNER) != c->me)/if (0)/
}
