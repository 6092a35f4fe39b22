# SPDX-License-Identifier: Apache-2.0
#
# A process that has taken the word for writing does not check the cells of readers.
# file: kernel/lib/lock.c
# test: libstargate_test
s/return sg_semw_no_readers(s->page) ? 0 :/return 1 ? 0 :/
