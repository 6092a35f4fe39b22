# SPDX-License-Identifier: Apache-2.0
#
# A copy through a window does not count as a look. Also, a read does not detect that the file was
# truncated during the read. Without this second change, the read would be repeated, which would
# hide the first.
# file: kernel/module/data_path.c kernel/module/file.c
# scenario: stale
# maps: shadow
/sgfs_copy_piece(struct inode/,/^}/{/sg_look_begin();/d;/sg_look_end();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
