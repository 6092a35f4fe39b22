# SPDX-License-Identifier: Apache-2.0
#
# A grower that was fenced clears a page that is in use by now.
# file: kernel/core/member/volume_grow.c
# test: grow_death_test
/^static int clear_last/,/^}/s/err = sg_may_write(vol);/err = 0;/
