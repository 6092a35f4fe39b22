# SPDX-License-Identifier: Apache-2.0
#
# A system that has found a lost ring still relies on rings.
# file: kernel/core/base/doorbell.c
# test: doorbell_test
/^void sg_doorbell_lost/,/^}/{/doubt/d;}
