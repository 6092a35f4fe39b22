# SPDX-License-Identifier: Apache-2.0
#
# A grower that was fenced clears chunks that other systems use by now.
# file: kernel/core/member/volume_grow.c
# test: grow_death_test
/^static int clear_words(/,/^}/{s/if (sg_may_write(vol))/if (0)/;s/if (sg_cas64(&word\[i\], seen, 0) != seen)/sg_store64(\&word[i], 0);\n\t\tif (0)/}
