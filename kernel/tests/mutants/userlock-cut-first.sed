# SPDX-License-Identifier: Apache-2.0
#
# Locks are removed before the new lock that replaces them exists: a death in between loses both.
# file: kernel/core/filelock/lock_table.c
# test: crash_userlock_test
/^static int lock_table_change/,/^}/ {
	/lock_table_put(made, &all);/d
	s/^\treturn 0;/\tif (made)\n\t\tlock_table_put(made, \&all);\n\treturn 0;/
}
