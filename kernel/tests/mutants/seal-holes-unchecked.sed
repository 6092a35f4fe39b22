# SPDX-License-Identifier: Apache-2.0
#
# The checker does not find holes in a sealed file.
# file: kernel/core/check/check_inode.c
# test: check_test
s/if (flags \& SG_FL_SEALED \&\& in_size.pages < in_size.end \&\&/if (0 \&\& in_size.pages < in_size.end \&\&/
