# SPDX-License-Identifier: Apache-2.0
#
# The bytes of a log outside the record are not written back before the record is valid.
# file: kernel/core/data/redo.c
# test: crash_atomic_test
s/^\t\tsg_fresh_write(tx->vol, s->off, log->buf + part.at, n);$/\t\tsg_os_write(sg_at(tx->vol, s->off), log->buf + part.at, n);/
