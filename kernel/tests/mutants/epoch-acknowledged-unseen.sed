# SPDX-License-Identifier: Apache-2.0
#
# A system acknowledges an epoch while a reader still uses earlier pages.
# file: kernel/core/journal/epoch.c
# test: systems_epoch_test
/^static bool try_ack/,/^}/{/sg_quiesce(vol);/d}
