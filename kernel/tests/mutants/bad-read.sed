# SPDX-License-Identifier: Apache-2.0
#
# What a walk finds is read, bad memory or not.
# file: kernel/core/table/table.c
# test: bad_test
s|sg_good_pages(vol, run->off, run->pages);|vol ? run->pages : 0;|
