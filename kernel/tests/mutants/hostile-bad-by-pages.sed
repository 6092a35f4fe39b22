# SPDX-License-Identifier: Apache-2.0
#
# Bad memory that is free is counted page by page.
# file: kernel/core/base/bad_pages.c
# test: hostile
s/k = end - page;/k = 1;/
