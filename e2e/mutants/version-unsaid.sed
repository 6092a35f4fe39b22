# SPDX-License-Identifier: Apache-2.0
#
# A system does not store its release in its slot.
# file: kernel/core/member/join.c
# scenario: upgrade
# maps: walk
/^static void say_who(/,/^}/{/slot->version, id->version/d}
