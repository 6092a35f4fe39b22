# SPDX-License-Identifier: Apache-2.0
#
# A file without links is freed although another system has it open.
# file: kernel/core/deferred/evict.c
# test: systems_opens_test
/^static int evict_locked/,/^}/s/sg_open_elsewhere(vol, ref)/false/
