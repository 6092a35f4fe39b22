# SPDX-License-Identifier: Apache-2.0
#
# A copy after a walk is not announced. A read does not notice either that the file was cut
# meanwhile: a second read would hide the fault.
# file: kernel/module/file.c
# scenario: stale
# maps: walk
/^static ssize_t sgfs_read_piece(/,/^}/{/sg_look_begin();/d;/sg_look_end();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
