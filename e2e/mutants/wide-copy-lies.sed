# SPDX-License-Identifier: Apache-2.0
#
# A copy by wide registers that a page of the source ended says that it has copied all.
# file: kernel/module/copy_wide.c
# scenario: copies
# maps: walk
s/return len + left;/return len;/
