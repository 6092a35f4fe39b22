# SPDX-License-Identifier: Apache-2.0
#
# A running machine counts as a machine of an earlier boot of its host.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/memcmp(slot->host_boot, id->boot, 16)/true/
