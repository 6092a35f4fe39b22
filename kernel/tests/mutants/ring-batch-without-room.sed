# SPDX-License-Identifier: Apache-2.0
#
# A batch is put behind the tail without looking for room for each of its records.
# file: kernel/lib/ring.c
# test: ring_test
s/if (\*put && !sg_ringw_has_room(/if (0 \&\& !sg_ringw_has_room(/
