# SPDX-License-Identifier: Apache-2.0
#
# A file is sealed while another system has it open.
# file: kernel/core/data/seal.c
# test: seal_test
s/err = who == SG_SLOTS ? 0 : used_by(vol, who, why);/err = who > SG_SLOTS ? used_by(vol, who, why) : 0;/
