# SPDX-License-Identifier: Apache-2.0
#
# A system relies on the rings of a sender that it ignores.
# file: kernel/core/base/doorbell.c
# test: doorbell_test
/^bool sg_doorbell_covers/,/^}/s/ || sg_load64(&d->muted)//
