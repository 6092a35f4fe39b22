# SPDX-License-Identifier: Apache-2.0
#
# Tables that are owed stay where the volume was.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/^	while (page && !m->err) {$/	while (!page \&\& !m->err) {/
