# SPDX-License-Identifier: Apache-2.0
#
# A read follows a walk into a bad page.
# file: kernel/core/table/table.c
# test: bad_test
s|sg_good_pages(vol, run->off, run->pages);|vol ? run->pages : 0;|
