# SPDX-License-Identifier: Apache-2.0
#
# A move does not adapt deferred tables.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/^	while (page && !m->err) {$/	while (!page \&\& !m->err) {/
