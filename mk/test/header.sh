# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Reads the keys in a scenario's header (CONTRIBUTING.md, "Testing").

# header KEY FILE: prints the value of a line "# KEY: value" at the top of a script.
header() {
	sed -nE "/^[^#]/q; s/^# $1: *//p" "$2" | head -n 1
}
