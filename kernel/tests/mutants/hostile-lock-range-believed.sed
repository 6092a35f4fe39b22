# SPDX-License-Identifier: Apache-2.0
#
# Users are told of a lock whatever range somebody else has stored there.
# file: kernel/core/filelock/lock_table.c
# test: hostile
s/^	       r->start <= r->last && r->last <= SG_USERLOCK_MAX;/	       true;/
