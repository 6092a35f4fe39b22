# SPDX-License-Identifier: Apache-2.0
#
# A joiner does not check again whether a growth has completed between its two checks.
# file: kernel/core/member/volume_grow.c
# test: grow_test
/^int sg_size_join/,/^}/s/if (hot_size(vol) == size)/if (true)/
