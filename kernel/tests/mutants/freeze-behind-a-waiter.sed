# SPDX-License-Identifier: Apache-2.0
#
# Who has a call that waits for another system keeps all others here waiting behind it.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\tif (sg_load64(&vol->stuck))/\tif (0 \&\& sg_load64(\&vol->stuck))/
