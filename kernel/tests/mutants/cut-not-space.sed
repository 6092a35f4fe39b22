# SPDX-License-Identifier: Apache-2.0
#
# A system that needs space does not wait for another system's truncation.
# file: kernel/core/deferred/enospc.c
# test: systems_epoch_test
/^static bool is_being_cut/,/^}/s/&& sg_is_cutting(vol, &ref);/\&\& false;/
