# SPDX-License-Identifier: Apache-2.0
#
# Who finds nothing promised does not make up for what is missing.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/} while (!tx->err && sg_space_mend_hints(tx->vol));/} while (0);/
