# SPDX-License-Identifier: Apache-2.0
#
# A fresh page replaces the old one before its bytes are written back.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
/^static int write_fresh(/,/^}/s/sg_fresh_write(w->vol, off + in, w->buf + at, len);/sg_os_write(sg_at(w->vol, off + in), w->buf + at, len);/
