# SPDX-License-Identifier: Apache-2.0
#
# After a power cut, the new chunks may be unformatted.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
s/^\t\tsg_fresh_zero(g->vol, off, n);/\t\tsg_os_zero(sg_at(g->vol, off), n);/
