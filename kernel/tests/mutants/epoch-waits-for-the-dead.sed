# SPDX-License-Identifier: Apache-2.0
#
# A dead system delays epochs.
# file: kernel/core/journal/epoch.c
# test: systems_epoch_test
/^static u64 worst_lag/,/^}/s/== SG_SLOT_LIVE/!= SG_SLOT_FREE/
