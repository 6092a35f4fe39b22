# SPDX-License-Identifier: Apache-2.0
#
# Each ring starts the threads, also if the volume has no news.
# file: kernel/core/member/rung.c
# test: doorbell_test
/^static bool is_news/,/^}/s/== word)/== ~word)/
