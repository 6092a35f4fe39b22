# SPDX-License-Identifier: Apache-2.0
#
# Users are told of a lock whatever range somebody else has stored there.
# file: kernel/core/filelock/lock_table.c
# test: hostile
/^static bool plausible/,/^}/s/has_range(r)/true/
