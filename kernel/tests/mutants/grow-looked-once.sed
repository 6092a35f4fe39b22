# SPDX-License-Identifier: Apache-2.0
#
# A joiner does not check again whether a growth has ended between its two looks.
# file: kernel/core/member/volume_grow.c
# test: grow_test
/^int sg_size_join/,/^}/s/if (hot_size(vol) == size)/if (true)/
