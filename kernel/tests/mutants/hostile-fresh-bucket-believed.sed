# SPDX-License-Identifier: Apache-2.0
#
# The used slots of a fresh bucket are read from the volume.
# file: kernel/core/dir/dir_bucket.c
# test: hostile
s/i = take_slot(h, key >> SG_DIR_TIE_BITS);/for (i = take_slot(h, key >> SG_DIR_TIE_BITS); sg_get(vol, sg_bucket_slot(h->bucket, i)); i++);/
