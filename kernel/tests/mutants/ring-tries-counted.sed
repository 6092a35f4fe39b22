# SPDX-License-Identifier: Apache-2.0
#
# A claim that another reader was faster with counts as lost.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/return cell & SG_RING_CLAIMED || SG_RING_HEAD_CELL(head) == i;/return cell | i;/
