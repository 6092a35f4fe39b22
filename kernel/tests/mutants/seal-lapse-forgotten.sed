# SPDX-License-Identifier: Apache-2.0
#
# A fenced system that may still store does not count as an opener.
# file: kernel/core/data/seal.c
# test: seal_test
s/if (lapsed >> i \& 1)/if (0 \&\& lapsed)/
