# SPDX-License-Identifier: Apache-2.0
#
# If a copy by wide registers stops at a page of the source, it still reports that it has copied
# everything.
# file: kernel/module/copy_wide.c
# scenario: copies
# maps: walk
s/return len + left;/return len;/
