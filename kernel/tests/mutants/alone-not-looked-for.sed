# SPDX-License-Identifier: Apache-2.0
#
# A joiner does not check whether another system has exclusive access.
# file: kernel/core/member/join.c
# test: systems_test
/^int sg_join(/,/^}/{
s/err = anybody_alone(vol) ?: /err = /
s/(!err && others)/(!err \&\& others \&\& false)/
}
