# SPDX-License-Identifier: Apache-2.0
#
# Nobody knows of who copies through a window.
# Nor does a read see that the file has been cut meanwhile: done once more, it would hide that.
# file: kernel/module/data_path.c kernel/module/file.c
# scenario: stale
# maps: shadow
/sgfs_copy_piece(struct inode/,/^}/{/sg_look_begin();/d;/sg_look_end();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
