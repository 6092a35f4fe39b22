# SPDX-License-Identifier: Apache-2.0
#
# A joiner loads the size, then the announcement of a growth, and not the size again. So it misses a
# growth that has completed between the two loads.
# file: kernel/core/member/volume_grow.c
# test: grow_test
/^int sg_size_join/,/^}/s/if (hot_size(vol) == size)/if (true)/
