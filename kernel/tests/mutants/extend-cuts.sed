# SPDX-License-Identifier: Apache-2.0
#
# fallocate() sets the size that its caller has computed, although another system has appended.
# file: kernel/core/data/truncate.c
# test: file_test
s/^	else if (how == ONLY_LONGER)$/	else if (how == ONLY_LONGER \&\& !old)/
