# SPDX-License-Identifier: Apache-2.0
#
# A write in place without the lock does not look at the seal.
# file: kernel/core/data/write.c
# test: seal_test
s/(SG_FL_ATOMIC | SG_FL_WHOLE | SG_FL_SEALED))) {/(SG_FL_ATOMIC | SG_FL_WHOLE))) {/
