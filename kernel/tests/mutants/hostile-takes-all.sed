# SPDX-License-Identifier: Apache-2.0
#
# Who leaves takes over all that others owed first.
# file: kernel/core/ledger.c
# test: hostile
s/if (vol->hurry)		/if (0)		/
