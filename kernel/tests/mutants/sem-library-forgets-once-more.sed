# SPDX-License-Identifier: Apache-2.0
#
# The first unlock releases a recursive mutex.
# file: kernel/lib/lock.c
# test: libstargate_test
s/me && more && more <= SG_SEMW_VALUE)/me \&\& more > SG_SEMW_VALUE)/
