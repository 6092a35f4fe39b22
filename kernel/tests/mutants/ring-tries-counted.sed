# SPDX-License-Identifier: Apache-2.0
#
# The claim of a dead reader counts as lost even if another reader moved the head first, so that the
# dead reader never got the record.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/return cell & SG_RING_CLAIMED || SG_RING_HEAD_CELL(head) == i;/return cell | i;/
