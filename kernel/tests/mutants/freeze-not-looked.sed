# SPDX-License-Identifier: Apache-2.0
#
# A copy counts as valid, whatever the other systems have done meanwhile.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\treturn \)freeze_watched ? 0 : -EAGAIN;/\1freeze_watched ? 0 : 0;/
