# SPDX-License-Identifier: Apache-2.0
#
# Pages are replaced although a process maps them.
# file: kernel/core/inode/mappers.c
# test: atomic_test
/^bool sg_replace_begin(/,/^}/s/return !is_mapped(vol, ref);/return is_mapped(vol, ref) || true;/
