# SPDX-License-Identifier: Apache-2.0
#
# A recursive mutex is given back by its first unlock.
# file: kernel/lib/lock.c
# test: libstargate_test
s/me && more && more <= SG_SEMW_VALUE)/me \&\& more > SG_SEMW_VALUE)/
