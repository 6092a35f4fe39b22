#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions for tests of the tools (native/*_test.sh). Each test works in its own directory. At the
# end the directory is removed, and the processes in $beater are killed.
set -euo pipefail

tools=${SG_TOOLS:-$(dirname "${BASH_SOURCE[0]}")/../../../build/tools}
tools=$(cd "$tools" && pwd)
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck disable=SC2034 # used by the sourcing scripts
mkfs=$tools/mkfs.stargatefs fsck=$tools/fsck.stargatefs ctl=$tools/stargatectl man=$src/man
# shellcheck disable=SC2034
completion=$src/completion
dir=$(mktemp -d "${TMPDIR:-/tmp}/sg-tools.XXXXXX")
beater=
trap '[[ -z $beater ]] || kill "$beater" 2>/dev/null; chmod -R u+rwx "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
checks=0
input=/dev/null
# Tests start Python often, so its start must be fast. Uses the interpreter that the runner names,
# if any, without the packages of this machine.
python=("${SG_PYTHON:-python3}" -IS)

fail() {
	echo "failed: $*" >&2
	[[ ! -s out ]] || sed 's/^/  out: /; 50q' out >&2
	[[ ! -s err ]] || sed 's/^/  err: /' err >&2
	exit 1
}

# expect STATUS COMMAND...: COMMAND exits with STATUS (*: any). It reads $input, and writes out and
# err.
expect() {
	local want=$1 got=0
	shift
	timeout 120 "$@" >out 2>err <"$input" || got=$?
	[[ $want == '*' || $got -eq $want ]] || fail "status $got, not $want: $*"
	checks=$((checks + 1))
}

# says PATTERN [FILE]: the output of the last command, or FILE, matches PATTERN.
says() {
	grep -qE -- "$1" "${2:-out}" || fail "${2:-out} does not match '$1'"
	checks=$((checks + 1))
}

# complains PATTERN: the error is one line, begins with the tool's name, and matches PATTERN.
complains() {
	[[ $(wc -l <err) -eq 1 ]] || fail "the error is not exactly one line"
	says "$1" err
	says '^(mkfs|fsck)\.stargatefs: |^stargatectl: ' err
}

# refuses STATUS PATTERN COMMAND...: prints one line of error, and nothing on standard output.
refuses() {
	local want=$1 pattern=$2
	shift 2
	expect "$want" "$@"
	complains "$pattern"
	[[ ! -s out ]] || fail "the command prints to standard output"
}

# options_in FILE: prints the options in FILE, one a line.
options_in() {
	grep -oE -- '(^|[^-[:alnum:]])-(-[a-z][a-z-]+|[A-Za-z])\b' "$1" | grep -oE -- '-.*' | sort -u
}

# help_agrees TOOL SECTION [OPTION]: --help fits into 80 columns. It has the same options as the
# manual page and the completion, except OPTION, which --help omits. Leaves the options in the file
# in-help.
help_agrees() {
	local tool=$1 name silent=${3:---none}
	name=$(basename "$tool")
	expect 0 "$tool" --help
	says '^Usage: '
	awk 'length > 80 { exit 1 }' out || fail "$name --help is wider than 80 columns"
	sed -n 's/^ \{2,6\}\(-.*\)/\1/p' out >help
	sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/{/^\.TP/{n;p}}' "$man/$name.$2" |
		sed 's/\\-/-/g; s/\\f.//g' >page
	options_in help >in-help
	options_in page | grep -vx -- "$silent" >in-page || true
	grep -x -- '--.*' in-help >long || true
	options_in "$completion/$name" | grep -x -- '--.*' | grep -vx -- "$silent" >in-completion
	diff in-help in-page >err || fail "$name: options of --help (<) and of the manual page (>) differ"
	diff long in-completion >err || fail "$name: long options of --help (<) and of the completion (>) differ"
	: >err
}

same() {
	cmp -s "$1" "$2" || fail "$1 and $2 differ"
	checks=$((checks + 1))
}

# json EXPRESSION: the last output is JSON, and EXPRESSION is true for it, as d.
json() {
	"${python[@]}" -c 'import json, sys
d = json.load(open("out", encoding="utf-8", errors="strict"))
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$1" || fail "not true for the JSON output: $1"
	checks=$((checks + 1))
}

# pick EXPRESSION: prints EXPRESSION, evaluated with d set to the JSON from standard input.
pick() {
	"${python[@]}" -c 'import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# poke FILE OFFSET BYTES: stores BYTES (in the notation of printf) at OFFSET.
poke() {
	# shellcheck disable=SC2059
	printf "$3" | dd of="$1" bs=1 seek="$(($2))" conv=notrunc status=none
}

# A prefix that runs a command as a user whom permissions restrict.
unprivileged=()
# shellcheck disable=SC2034
[[ $(id -u) -ne 0 ]] || unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups)
