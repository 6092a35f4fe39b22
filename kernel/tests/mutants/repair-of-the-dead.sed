# SPDX-License-Identifier: Apache-2.0
#
# A repair continues although another system has fenced it and uses the volume.
# file: kernel/core/check/check_view.c
# test: systems_test
s/^	if (!c->dead \&\& c->vol.slot >= 0 \&\& sg_is_silenced(&c->vol))/	if (false)/
s/^	if (sg_cas64(p, was, val) == was)/	sg_store64(p, val);\n	if (was + 1)/
