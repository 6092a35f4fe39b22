# SPDX-License-Identifier: Apache-2.0
#
# A batch is stored behind the tail without a check of the room for each record.
# file: kernel/lib/ring.c
# test: ring_test
s/if (\*put && (pos + n - begin > w.grains/if (0 \&\& (pos + n - begin > w.grains/
