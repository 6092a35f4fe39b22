# SPDX-License-Identifier: Apache-2.0
#
# Only maintenance completes a release that had to wait, and it also releases the owner's next lock.
# file: kernel/core/filelock/lock_table.c
# test: userlock_paused_test
/^int sg_userlock_enter/,/^}/s/if (!err && make_releases(c))/if (!err \&\& patience == SG_USERLOCK_TRY \&\& make_releases(c))/
