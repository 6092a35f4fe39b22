# SPDX-License-Identifier: Apache-2.0
#
# A reader that frees room does not wake the sender that waits for it.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/> SG_SEMW_COUNT;$/> ~0ULL - 1;/
