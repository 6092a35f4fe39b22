# SPDX-License-Identifier: Apache-2.0
#
# A system rings numbers of an exchange to which it is not connected.
# file: kernel/core/base/doorbell.c
# test: doorbell_test
/^static bool is_connected/,/^}/s/SG_DOORBELL_EXCHANGE(word) == .*;/SG_DOORBELL_EXCHANGE(word);/
