# SPDX-License-Identifier: Apache-2.0
#
# A reader moves the head without checking whether another reader was first.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/if (!sg_ringw_swap(sg_ringw_at(r, SG_RING_HEAD), head, next))/if (sg_ringw_store(sg_ringw_at(r, SG_RING_HEAD), next), 0)/
