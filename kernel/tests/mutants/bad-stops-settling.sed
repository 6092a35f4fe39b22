# SPDX-License-Identifier: Apache-2.0
#
# A deferred inode in bad memory prevents every join.
# file: kernel/core/base/base.h
# test: bad_test
s/^	return err == -EIO \&\& sg_is_ours(vol) \&\& !sg_load64(&vol->shut_down);/	return err == 1 \&\& vol;/
