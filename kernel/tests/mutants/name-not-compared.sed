# SPDX-License-Identifier: Apache-2.0
#
# The engine mistakes a name for another one with the same hash.
# file: kernel/core/dir/dir_bucket.c
# test: collide_test
/^static bool same_bytes/,/^}/{/^{/,/^}/d};s/^static bool same_bytes.*/&\n{\n\treturn vol \&\& at \&\& name \&\& len;\n}/
