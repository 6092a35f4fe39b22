# SPDX-License-Identifier: Apache-2.0
#
# Nobody is told that the list has changed.
# file: kernel/core/bad.c
# test: bad_test
s/^	if (vol->on_bad)$/	if (!vol)/
