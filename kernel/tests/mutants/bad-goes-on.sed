# SPDX-License-Identifier: Apache-2.0
#
# Systems continue although a page is bad that the complete volume needs.
# file: kernel/core/base/bad_pages.c
# test: bad_test
s/if (sg_bad_vital(vol, &off))$/if (sg_bad_vital(vol, \&off) \&\& !vol)/
