# SPDX-License-Identifier: Apache-2.0
#
# A claim counts as lost although another reader was faster.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/return cell & SG_RING_CLAIMED || SG_RING_HEAD_CELL(head) == i;/return cell | i;/
