#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargate-ring without a mounted volume: help, manual page, completion, refusals.
# e2e/scenarios/ring.sh uses it on mounts; ring_test.c tests the library's functions.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

ring=$tools/stargate-ring

help_agrees "$ring" 1
expect 0 "$ring" --version
says '^stargate-ring [0-9.]+ '

refuses_ring() {
	local want=$1 pattern=$2
	shift 2
	expect "$want" "$ring" "$@"
	[[ $(wc -l <err) -eq 1 && ! -s out ]] || fail "the refusal is not exactly one line"
	says "^stargate-ring: .*$pattern" err
}
refuses_ring 2 'there is no command'
refuses_ring 2 "there is no command 'lst'" lst
refuses_ring 2 'NAME is missing' create
refuses_ring 2 'too many arguments' create a b
refuses_ring 2 'too many arguments' list a
refuses_ring 2 'too many arguments' bench a
refuses_ring 2 "there is no option '-x'" -x list
refuses_ring 2 'not possible with this command' list --size 64K
refuses_ring 2 'not possible with this command' send a -n 3
refuses_ring 2 "size '65M': must be 64K to 64M" create a --size 65M
refuses_ring 2 'size .x.: must be' create a --size x
refuses_ring 2 'size .0.: must be' pipe a --size 0
refuses_ring 2 'mode .8.: must be octal' create a --mode 8
refuses_ring 2 'block .32M.: must be' send a --block 32M
refuses_ring 2 'tag .-1.: must be' send a --tag -1
refuses_ring 2 'count .0.: must be' recv a --count 0
refuses_ring 2 'timeout .soon.: must be' recv a -t soon
refuses_ring 2 'block: at most' bench --block 1M
refuses_ring 2 'readers .65.: must be 1 to 64' bench --readers 65
refuses_ring 2 'writers .0.: must be 1 to 64' bench --writers 0
refuses_ring 2 'too many arguments' dial a b
for command in list 'create a' 'rm a' 'show a' 'stat a' 'reset a' 'send a' 'recv a' 'pipe a' \
	'listen a' 'dial a' bench; do
	# shellcheck disable=SC2086 # words
	refuses_ring 1 'not on a mounted StargateFS volume' --volume "$dir" $command
done
refuses_ring 1 'not on a mounted StargateFS volume' --volume /nowhere list
for name in -x --help - --; do
	refuses_ring 1 'not on a mounted StargateFS volume' --volume "$dir" rm -- "$name"
done
refuses_ring 2 'too many arguments' --volume "$dir" rm -- -x -y
for command in list create rm show stat reset send recv pipe listen dial bench; do
	expect 0 "$ring" help "$command"
	cp out help
	says "^Usage: stargate-ring \\[OPTION\\]\\.\\.\\. $command( |$)"
	says "^  $command "
	says '^  -v, --volume PATH'
	expect 0 "$ring" "$command" --help
	same out help
done
expect 0 "$ring" help create
! grep -q -- '--count\|--block\|--json\|^  rm\|^  help\|Exit status' out ||
	fail "the help on create has lines on other commands"
refuses_ring 2 "there is no command 'nothing'" help nothing

echo "$checks checks"
