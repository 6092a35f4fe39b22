# SPDX-License-Identifier: Apache-2.0
#
# A system that finds no hints does not set the missing hints.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/} while (!tx->err && sg_space_mend_hints(tx->vol));/} while (0);/
