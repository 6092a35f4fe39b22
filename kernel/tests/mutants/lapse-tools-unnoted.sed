# SPDX-License-Identifier: Apache-2.0
#
# A tool that is stopped in a copy is fenced as if it had ended.
# file: kernel/core/member/fence.c
# test: lapse_test
s/^\t       !has_ended(&info);/\t       !info.pid;/
