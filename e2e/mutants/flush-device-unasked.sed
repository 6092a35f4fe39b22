# SPDX-License-Identifier: Apache-2.0
#
# The module does not ask the device whether its caches persist.
# file: kernel/module/flush.c
# scenario: flush
# maps: walk
s/return !mem->dax || dax_write_cache_enabled(mem->dax);/return true;/
