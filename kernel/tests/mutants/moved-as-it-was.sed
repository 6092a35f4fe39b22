# SPDX-License-Identifier: Apache-2.0
#
# A volume that has grown by what the last of the dead left is moved as if it had not.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/^	return sg_size_take(vol, sg_get(vol, SG_HOT(size)));/	return 0;/
