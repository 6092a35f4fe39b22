#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs coherence.sh between a guest with the oldest kernel and a guest with the newest one.
#
# rig: --guests 2 --size 256M --mem 384M --pkgs "acl attr"
# mixed: 6.1,7.2
# kernels: 6.12
# maps: inside
# limit: 1200
# shellcheck source=e2e/scenarios/coherence.sh
source "$(dirname "$0")/coherence.sh"
