# SPDX-License-Identifier: Apache-2.0
#
# A copy counts, whatever has become of the others meanwhile.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/^\(\treturn \)stood ? 0 : -EAGAIN;/\1stood ? 0 : 0;/
