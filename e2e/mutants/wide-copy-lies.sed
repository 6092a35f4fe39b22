# SPDX-License-Identifier: Apache-2.0
#
# A copy by wide registers that ended at a page of the source reports that it copied everything.
# file: kernel/module/copy_wide.c
# scenario: copies
# maps: walk
s/return len + left;/return len;/
