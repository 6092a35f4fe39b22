# SPDX-License-Identifier: Apache-2.0
#
# A system that leaves sends no heartbeat while it reclaims.
# file: kernel/core/deferred/reclaim.c
# test: systems_epoch_test
/^static int reclaim(/,/^}/{/sg_epoch_acknowledge(vol);/d;}
