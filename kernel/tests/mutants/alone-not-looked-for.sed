# SPDX-License-Identifier: Apache-2.0
#
# Who joins does not look whether somebody has the volume to himself.
# file: kernel/core/member/join.c
# test: systems_test
/^int sg_join(/,/^}/{
s/err = anybody_alone(vol) ?: /err = /
s/(!err && others)/(!err \&\& others \&\& false)/
}
