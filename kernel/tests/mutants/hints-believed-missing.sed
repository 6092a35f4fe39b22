# SPDX-License-Identifier: Apache-2.0
#
# Nothing is promised, so there is no space.
# file: kernel/core/space.c
# test: space_test
s/^		    take_anywhere(tx, want, off, got, \&busy))$/		    (tx->err \&\& take_anywhere(tx, want, off, got, \&busy)))/
