# SPDX-License-Identifier: Apache-2.0
#
# Free bad memory is counted page by page.
# file: kernel/core/base/bad_pages.c
# test: hostile
s/k = end - page;/k = 1;/
