# SPDX-License-Identifier: Apache-2.0
#
# All objects share one polling time.
# file: kernel/core/sem/sem.h
# test: sem_test
s/return &s->patience\[SG_SEM_BUCKET(rec)\];/return \&s->patience[rec % SG_SEM_BUCKETS];/
