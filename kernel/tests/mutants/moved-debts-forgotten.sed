# SPDX-License-Identifier: Apache-2.0
#
# Deferred tables are not moved.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/^	while (page && !m->err) {$/	while (!page \&\& !m->err) {/
