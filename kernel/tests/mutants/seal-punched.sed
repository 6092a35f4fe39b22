# SPDX-License-Identifier: Apache-2.0
#
# A part of a page of a sealed file is punched.
# file: kernel/core/data/truncate.c
# test: seal_test
s/err = sg_may_store(vol, ref) ?: sg_zero_mapped(vol, ref, \*pos, end);/err = sg_may_change(vol, ref) ?: sg_zero_mapped(vol, ref, *pos, end);/
