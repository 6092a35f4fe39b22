#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargate-sem without a mounted volume: help, manual page, refusals. Also the files of libstargate
# for programs: a header for C and C++, symbols with a version, a .pc file, a manual page.
# e2e/scenarios/sem.sh uses it on mounts; libstargate_test.c tests the library's functions.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

sem=$tools/stargate-sem
lib=$(cd "$tools/../lib" && pwd)
top=$src/../lib

# --- the tool ---------------------------------------------------------------------------------

help_agrees "$sem" 1
expect 0 "$sem" --version
says '^stargate-sem [0-9.]+ '

refuses_sem() {
	local want=$1 pattern=$2
	shift 2
	expect "$want" "$sem" "$@"
	[[ $(wc -l <err) -eq 1 && ! -s out ]] || fail "the refusal is not exactly one line"
	says "^stargate-sem: .*$pattern" err
}
refuses_sem 2 'there is no command'
refuses_sem 2 "there is no command 'lst'" lst
refuses_sem 2 'NAME is missing' create
refuses_sem 2 'too many arguments' create a b
refuses_sem 2 'too many arguments' list a
refuses_sem 2 'COMMAND is missing' lock a
refuses_sem 2 "there is no option '-x'" -x list
refuses_sem 2 'is not possible with this command' list --value 3
refuses_sem 2 'is not possible with this command' create a -t 3
for bad in '--type lock' '--value -1' '--value x' '--mode 8' '--mode 1777'; do
	# shellcheck disable=SC2086 # two words
	refuses_sem 2 'must be' create a $bad
done
refuses_sem 2 'must be' wait a --timeout -1
refuses_sem 2 'must be' wait a --timeout soon
for word in --timeout=soon -tsoon; do refuses_sem 2 "timeout 'soon': must be a number of seconds" wait a "$word"; done
for command in list 'create a' 'rm a' 'show a' 'stat a' 'reset a' 'wait a' 'post a'; do
	# shellcheck disable=SC2086
	refuses_sem 1 'not on a mounted StargateFS volume' --volume "$dir" $command
done
refuses_sem 125 'not on a mounted StargateFS volume' --volume "$dir" lock a -- true
refuses_sem 1 'not on a mounted StargateFS volume' --volume /nowhere list

# Behind "--", a name may begin with a hyphen; "-" is always a name.
for name in -x --help - --; do
	refuses_sem 1 'not on a mounted StargateFS volume' --volume "$dir" rm -- "$name"
	refuses_sem 125 'not on a mounted StargateFS volume' --volume "$dir" lock -- "$name" -- true
done
refuses_sem 1 'not on a mounted StargateFS volume' --volume "$dir" rm -
refuses_sem 2 'too many arguments' --volume "$dir" rm -- -x -y
refuses_sem 2 'COMMAND is missing' lock -- -x
# Help on one command lists the options of that command only.
for command in list create rm show stat reset wait post lock; do
	expect 0 "$sem" help "$command"
	cp out help
	says "^Usage: stargate-sem \\[OPTION\\]\\.\\.\\. $command( |$)"
	says "^  $command "
	says '^  -v, --volume PATH'
	expect 0 "$sem" "$command" --help
	same out help
done
expect 0 "$sem" help create
says '^      --type TYPE'
says '^                         event; else a semaphore$'
! grep -q -- '--count\|--by\|--json\|^  rm\|^  help\|Exit status' out ||
	fail "the help on create has lines on other commands"
expect 0 "$sem" help
says '^  -j, --json'
refuses_sem 2 "there is no command 'nothing'" help nothing

# --- the tool on a library with prescribed results ---------------------------------------------

cat >yes.c <<'END'
#include "stargate.h"
#include "tool.h"
#define YES(name, ...)	int name(__VA_ARGS__) { return 0; }
void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);
const char *stargate_why(int err) { return strerror(err); }
uint64_t stargate_in(uint64_t ns) { return ns; }
YES(stargate_create, stargate_sem **s, const char *v, const char *n, const struct stargate_new *w,
    unsigned int h)
YES(stargate_open, stargate_sem **s, const char *v, const char *n, enum stargate_type t, unsigned int h)
void stargate_close(stargate_sem *s) { }
int stargate_remove(const char *v, const char *n) { return printf("removed <%s>\n", n) < 0; }
YES(stargate_reset, const char *v, const char *n)
YES(stargate_stat, const char *v, const char *n, struct stargate_stat *st)
int stargate_fstat(stargate_sem *s, struct stargate_stat *st)
{
	memset(st, 0, sizeof(*st));
	st->type = STARGATE_MUTEX;
	return 0;
}
int stargate_list(const char *v, int (*fn)(void *, const struct stargate_stat *), void *ctx)
{
	struct stargate_stat st = { .type = STARGATE_MUTEX, .slot = 3, .comm = "c\033[m", .system = "x\ny" };

	strcpy(st.name, "b\033[2J\n c");
	fn(ctx, &st);
	strcpy(st.name, "a`id`");
	return fn(ctx, &st);
}
YES(stargate_mutex_lock, stargate_sem *s, uint64_t until)
YES(stargate_mutex_unlock, stargate_sem *s)
YES(stargate_consistent, stargate_sem *s)
YES(stargate_read_lock, stargate_sem *s, uint64_t until)
YES(stargate_read_unlock, stargate_sem *s)
YES(stargate_write_lock, stargate_sem *s, uint64_t until)
YES(stargate_write_unlock, stargate_sem *s)
YES(stargate_sem_wait, stargate_sem *s, uint64_t until)
YES(stargate_sem_post, stargate_sem *s)
YES(stargate_cond_look, stargate_sem *s, uint64_t *seen)
YES(stargate_cond_wait_from, stargate_sem *s, uint64_t seen, uint64_t until)
YES(stargate_cond_signal, stargate_sem *s)
YES(stargate_cond_broadcast, stargate_sem *s)
YES(stargate_barrier_wait, stargate_sem *s, uint64_t until, int *last)
YES(stargate_event_read, stargate_sem *s, uint64_t *n)
YES(stargate_event_await, stargate_sem *s, uint64_t n, uint64_t until)
YES(stargate_event_advance, stargate_sem *s, uint64_t by)
END
yes=$dir/stargate-sem
expect 0 gcc -w -std=gnu11 -D_GNU_SOURCE -I"$top" -I"$src/../core" -I"$src/lib" -I"$src/sem" -o "$yes" yes.c \
	"$src"/sem/*.c "$src/lib/objects.c" "$src"/lib/{tool,text,json}.c
for name in -x --help - --; do
	expect 0 "$yes" rm -- "$name"
	says "^removed <$name>$"
done
expect 0 "$yes" list --names
# shellcheck disable=SC2016 # a literal name
printf '%s\n' 'a`id`' 'b\x1b[2J\x0a c' >want
same out want
expect 0 "$yes" list
[[ $(wc -l <out) -eq 2 ]] || fail "a name takes more than one line"
expect 127 sh -c "exec '$yes' lock a -- /nowhere/at/all 2>&-"
expect 126 sh -c "exec '$yes' lock a -- / 2>&-"
expect 7 "$yes" lock -- -x -- sh -c 'exit 7'
# The command inherits the tool's signal settings, without signals that only the tool ignores.
ignored() { # COMMAND...: prints which of SIGINT (2), SIGQUIT (3), SIGXFSZ (25) its child ignores
	local set
	set=$("$@" "$yes" lock a -- sed -n 's/^SigIgn:\t//p' /proc/self/status)
	echo $((0x$set & 0x1000006))
}
[[ $(ignored env --default-signal) -eq 0 ]] ||
	fail "the command ignores signals that were not ignored"
[[ $(ignored env --ignore-signal=XFSZ,INT) -eq $((0x1000002)) ]] ||
	fail "the command does not ignore signals that were ignored"

# --- its completion ---------------------------------------------------------------------------
# Other members choose names. So the completion quotes the names that it offers, and executes no
# part of them.

mkdir fake
# shellcheck disable=SC2016,SC2028 # quoted text of a script, and of a name
{
	echo '#!/bin/bash'
	echo '[[ $1 == list ]] || exit 1'
	echo 'show() { if [[ $2 == --names ]]; then echo "$3"; else echo "mutex 600 free $3"; fi; }'
	for name in 'plain' 'x`id>pwned`' '$(id>pwned)' '<(id>pwned)' 'two words' 'a\x0ab' 'back\\slash' ';id>pwned'; do
		printf "show %s %s '%s'\n" '"$1"' '"${2:-}"' "$name"
	done
} >fake/stargate-sem
chmod +x fake/stargate-sem

# complete_sem WORD: the completion's offers for WORD as the NAME of rm.
complete_sem() {
	expect 0 env PATH="$dir/fake:$PATH" bash -c "source '$completion/stargate-sem'
		compopt() { :; }
		COMP_WORDS=(stargate-sem rm \"\$1\") COMP_CWORD=2
		_stargate_sem
		printf '%s\n' \"\${COMPREPLY[@]}\"" - "$1"
}

if command -v compgen >/dev/null; then
	complete_sem ''
	[[ ! -e pwned ]] || fail "the completion has run a command in a name"
	# shellcheck disable=SC2016
	printf '%q\n' plain 'x`id>pwned`' '$(id>pwned)' '<(id>pwned)' 'two words' $'a\nb' 'back\slash' ';id>pwned' >want
	same out want
	# an offer in a command line expands to the name
	while read -r offered; do
		bash -c "printf '%s\\0' $offered"
	done <out >again
	# shellcheck disable=SC2016
	printf '%s\0' plain 'x`id>pwned`' '$(id>pwned)' '<(id>pwned)' 'two words' $'a\nb' 'back\slash' ';id>pwned' >want
	same again want
	[[ ! -e pwned ]] || fail "the completion has run a command in a name"
	complete_sem 'tw'
	printf '%q\n' 'two words' >want
	same out want

	# The completion queries the volume of the command line, with any quotes.
	mkdir elsewhere
	cat >elsewhere/stargate-sem <<-END
		#!/bin/bash
		printf '%s\0' "\$@" >>'$dir/asked'
		[[ \$* != *list*--names ]] || echo one
	END
	chmod +x elsewhere/stargate-sem
	# complete_words WORD...: the completion's offers for the last, incomplete word of
	# "stargate-sem WORD...".
	complete_words() {
		rm -f asked
		expect 0 env PATH="$dir/elsewhere:$PATH" HOME=/home/me bash -uc "source '$completion/stargate-sem'
			compopt() { :; }
			COMP_WORDS=(stargate-sem \"\$@\") COMP_CWORD=\$#
			_stargate_sem
			((\${#COMPREPLY[@]} == 0)) || printf '%s\n' \"\${COMPREPLY[@]}\"" - "$@"
	}
	# asks VOLUME WORD...: the completion lists the names of VOLUME once. An empty VOLUME: of no
	# volume.
	asks() {
		local volume=$1
		shift
		complete_words "$@" ''
		printf '%s\0' ${volume:+"--volume=$volume"} list --names >want
		same asked want
		[[ $(<out) == one ]] || fail "no name is offered behind $*"
	}
	asks '' rm
	asks /mnt/a -v /mnt/a rm
	asks /mnt/a -v/mnt/a rm
	asks /mnt/a --volume /mnt/a rm
	asks /mnt/a --volume = /mnt/a lock # the words into which the shell splits --volume=/mnt/a
	asks /mnt/a --volume=/mnt/a lock
	asks /mnt/b -v /mnt/a -v /mnt/b show
	asks /mnt/a rm -v /mnt/a
	asks /mnt/list -v /mnt/list -t 5 wait
	asks list -v list post
	asks '/mnt/a b' -v '/mnt/a\ b' rm
	asks '/mnt/a b' -v '"/mnt/a b"' rm
	asks "/mnt/a'b" -v "\"/mnt/a'b\"" rm
	# shellcheck disable=SC2016 # a name with such characters in it
	asks '/mnt/$(id>pwned)' -v "'/mnt/\$(id>pwned)'" rm
	# shellcheck disable=SC2088 # the shell expands it when the line is run
	asks /home/me/a -v '~/a' rm
	asks '' lock -- # words behind -- are no options
	# The completion does not use a volume's word that the shell would expand, and offers no
	# names.
	# shellcheck disable=SC2016
	for word in '$HOME' '$(id>pwned)' '"`id>pwned`"'; do
		complete_words -v "$word" rm ''
		[[ ! -s out && ! -e asked ]] || fail "the completion offers names after -v $word"
	done
	[[ ! -e pwned ]] || fail "the completion has run a command in the name of a volume"
	mkdir -p place/folder
	for words in '-v' '--volume' '--volume ='; do
		# shellcheck disable=SC2086 # words
		complete_words $words place/f
		[[ $(<out) == place/folder ]] || fail "no folder is offered behind $words"
	done
fi

# --- the library ------------------------------------------------------------------------------

printf '#include <stargate.h>\nint main(void) { return stargate_why(0) == NULL; }\n' >user.c
expect 0 gcc -Wall -Wextra -Wpedantic -Werror -std=c99 -I"$top" -o user user.c "$lib/libstargate.a" -pthread
expect 0 ./user
expect 0 gcc -I"$top" -o user user.c -L"$lib" -lstargate
expect 0 env LD_LIBRARY_PATH="$lib" ./user
readelf -d "$lib/libstargate.so" >out
says 'SONAME.*\[libstargate\.so\.1\]'
if command -v g++ >/dev/null; then
	cp user.c user.cc
	expect 0 g++ -Wall -Wextra -Wpedantic -Werror -I"$top" -o user user.cc "$lib/libstargate.a" -pthread
fi
# The header declares exactly the functions of the library, and the manual page describes each.
grep -oE '\bstargate_[a-z_]+\(' "$top/stargate.h" | tr -d '(' | sort -u >offered
nm -D --defined-only "$lib/libstargate.so" | grep -oE 'stargate_[a-z_]+@@STARGATE_1$' | sed 's/@.*//' | sort >has
diff offered has >err || fail "functions only in the header (<) or only in the library (>)"
[[ $(nm -D --defined-only "$lib/libstargate.so" | wc -l) -eq $(($(wc -l <has) + 1)) ]] ||
	fail "the library exports other symbols"
while read -r name; do
	grep -q "$name(" "$top/man/libstargate.3" || fail "libstargate.3 does not describe $name"
	checks=$((checks + 1))
done <has
# shellcheck disable=SC2016 # a variable of pkg-config
grep -qx 'Libs: -L${libdir} -lstargate' "$lib/stargate.pc" ||
	fail "stargate.pc has no Libs line for libstargate"

echo "$checks checks"
