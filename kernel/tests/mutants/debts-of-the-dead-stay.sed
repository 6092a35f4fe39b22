# SPDX-License-Identifier: Apache-2.0
#
# A system without space does not take over the deferred frees of dead systems.
# file: kernel/core/deferred/enospc.c
# test: systems_epoch_test
s/^\(\t*\)sg_settle_free(vol, false);$/\1;/
