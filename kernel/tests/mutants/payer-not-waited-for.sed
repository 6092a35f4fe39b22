# SPDX-License-Identifier: Apache-2.0
#
# A thread does not wait for another thread of the system that is reclaiming at that moment.
# file: kernel/core/volume/statfs.c
# test: reclaimer_test
s/while (sg_ledger_reclaiming(vol) \&\& /while (0 \&\& sg_ledger_reclaiming(vol) \&\& /
