# SPDX-License-Identifier: Apache-2.0
#
# Bytes behind a truncated size reappear when the file grows.
# file: kernel/core/data/truncate.c
# test: model_test
s/sg_zero_mapped(vol, ref, size, SG_ALIGN_UP(size, SG_PAGE))/0/;s/sg_zero_mapped(vol, ref, old, SG_MIN(size, [^)]*)))/old ? 0 : 0/
