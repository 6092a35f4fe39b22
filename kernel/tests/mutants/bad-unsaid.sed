# SPDX-License-Identifier: Apache-2.0
#
# The system does not report that the list has changed.
# file: kernel/core/base/bad_pages.c
# test: bad_test
s/^	if (vol->on_bad)$/	if (!vol)/
