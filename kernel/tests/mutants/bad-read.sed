# SPDX-License-Identifier: Apache-2.0
#
# A read accesses a bad page that a walk has found.
# file: kernel/core/table/table.c
# test: bad_test
s|sg_good_pages(vol, run->off, run->pages);|vol ? run->pages : 0;|
