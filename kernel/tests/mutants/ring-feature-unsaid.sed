# SPDX-License-Identifier: Apache-2.0
#
# The feature bit of rings is not stored.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/sb.ro_compat |= SG_RO_COMPAT_RINGS;/sb.ro_compat |= 0;/
