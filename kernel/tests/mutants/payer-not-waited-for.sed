# SPDX-License-Identifier: Apache-2.0
#
# What another thread of the system is just paying is not waited for.
# file: kernel/core/volume/statfs.c
# test: payer_test
s/while (sg_ledger_paying(vol) \&\& /while (0 \&\& sg_ledger_paying(vol) \&\& /
