# SPDX-License-Identifier: Apache-2.0
#
# A batch is put behind the tail without looking for room for each of its records.
# file: kernel/lib/ring.c
# test: ring_test
s/if (\*put && (pos + n - begin > w.grains/if (0 \&\& (pos + n - begin > w.grains/
