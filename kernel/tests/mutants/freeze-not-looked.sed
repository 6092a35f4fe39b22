# SPDX-License-Identifier: Apache-2.0
#
# A copy always counts as valid, even if other systems have stored meanwhile.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\treturn \)freeze_watched ? 0 : -EAGAIN;/\1freeze_watched ? 0 : 0;/
