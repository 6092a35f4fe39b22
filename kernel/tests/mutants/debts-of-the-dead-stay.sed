# SPDX-License-Identifier: Apache-2.0
#
# Who finds no space does not take over what the dead have freed.
# file: kernel/core/deferred/enospc.c
# test: systems_epoch_test
s/^\(\t*\)sg_settle_free(vol, false);$/\1;/
