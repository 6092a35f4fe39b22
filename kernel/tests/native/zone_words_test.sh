#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl zone and volume: the tool refuses arguments before it calls LVM. e2e/scenarios/zone.sh
# uses LVM and real memory; zone_test.c tests the parsing of LVM's reports.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

# --- commands of two words ------------------------------------------------------------------

refuses 2 'zone: the command is missing' "$ctl" zone
refuses 2 'volume: the command is missing' "$ctl" volume
refuses 2 "no command 'zone list'" "$ctl" zone list
refuses 2 "no command 'volume creat'" "$ctl" volume creat x
refuses 2 "no command 'volum'" "$ctl" volum create x
refuses 2 'zone create: takes ZONE DEVICE' "$ctl" zone create z
refuses 2 'zone show: takes \[ZONE\]' "$ctl" zone show a b
refuses 2 'zone destroy: takes ZONE' "$ctl" zone destroy
refuses 2 'zone extend: takes ZONE \[DEVICE' "$ctl" zone extend
refuses 2 'zone extend: takes no --size' "$ctl" zone extend z --size 16M
for words in '' a 'a b c'; do
	# shellcheck disable=SC2086 # words
	refuses 2 'volume rename: takes VOLUME NAME' "$ctl" volume rename $words
done
for command in show delete relocate activate; do
	refuses 2 "volume $command: takes VOLUME" "$ctl" volume "$command"
	refuses 2 "volume $command: takes VOLUME" "$ctl" volume "$command" a b
done

# --- names ------------------------------------------------------------------------------------

long=$(printf 'n%.0s' {1..64})
for name in '' . .. .a _a a_b 'a b' 'a;b' "\$(id)" snapshot snapshot1 pvmove0 "$long" $'a\nb' $'\303\244' $'\377'; do
	refuses 2 'the name of a zone is' "$ctl" zone create "$name" /dev/null
	refuses 2 'the name of a zone is' "$ctl" zone destroy "$name"
	refuses 2 'the name of a zone is' "$ctl" zone extend "$name"
	refuses 2 'the name of a zone is' "$ctl" zone extend "$name" /dev/null
	refuses 2 'the name of a volume is' "$ctl" volume rename "$name" b
	refuses 2 'the name of a volume is .* stays in the same zone' "$ctl" volume rename a "$name"
	refuses 2 'the name of a volume is' "$ctl" volume create "$name" --size 16M
	refuses 2 'the name of a volume is' "$ctl" volume delete "z/$name"
	refuses 2 'the name of a zone is' "$ctl" volume delete "$name/v"
done
refuses 2 'the name of a volume is' "$ctl" volume show z/a/b

refuses 2 'the name of a volume is .* stays in the same zone' "$ctl" volume rename z/a z/b

# A volume with a name of the CSI driver (csi-driver/internal/pool/name.go) keeps its name: a claim
# needs the name.
for name in pvc-0123 x-89ab e-cdef s-0; do
	refuses 10 "$name: has a name of the CSI driver" "$ctl" volume rename $name b
	refuses 10 "z/$name: has a name of the CSI driver" "$ctl" volume rename z/$name b
	refuses 10 "'$name': is a name of the CSI driver" "$ctl" volume rename a $name
	expect 10 "$ctl" -j volume rename $name b
	json 'd == {"reason": "unusable"}'
done

# --- a closed terminal ------------------------------------------------------------------------

# A command that changes a zone, or a volume in a zone, runs to its end. This holds on machines with
# and without LVM.
if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	cat >signals.c <<-'END'
		#define _GNU_SOURCE
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		void (*signal(int number, void (*how)(int)))(int)
		{
			struct sigaction to = { .sa_handler = how }, was;
			FILE *f;

			if (how == SIG_IGN) {
				f = fopen(getenv("IGNORED"), "a");
				fprintf(f, "%d\n", number);
				fclose(f);
			}
			return sigaction(number, &to, &was) ? SIG_ERR : was.sa_handler;
		}
	END
	gcc -shared -fPIC -o signals.so signals.c || fail "cannot compile signals.c"
	for words in 'zone create no-zone /dev/null' 'zone extend no-zone' 'zone destroy no-zone' \
		'volume create no-zone/a --size 16M' 'volume resize no-zone/a --size 16M' \
		'volume delete no-zone/a' 'volume rename no-zone/a b' 'volume snapshot no-zone/a b' \
		'volume clone no-zone/a b' 'volume relocate no-zone/a'; do
		: >ignored
		# shellcheck disable=SC2086 # words
		expect '*' env LD_PRELOAD="$dir/signals.so" IGNORED="$dir/ignored" "$ctl" $words
		for number in 1 13; do # SIGHUP, SIGPIPE
			grep -qx "$number" ignored ||
				fail "$words: signal $number would end the command too early"
			checks=$((checks + 1))
		done
	done
fi

# --- numbers ----------------------------------------------------------------------------------

refuses 2 'volume create: takes' "$ctl" volume create a
refuses 2 'volume create: takes' "$ctl" volume create a b --size 16M
refuses 2 'volume create: takes' "$ctl" volume create --size 16M -- a
refuses 2 'volume resize: takes' "$ctl" volume resize a
for size in '' 0 65T -16M 16Q 16M1; do
	refuses 2 "--size '$size': must be" "$ctl" volume create a --size="$size"
done
for size in 1 0x1000 15M 17M; do
	refuses 2 '--size [0-9]+: a volume has 16M to 64T' "$ctl" volume create a --size=$size
	refuses 2 '--size [0-9]+: a volume has 16M to 64T' "$ctl" volume resize a --size=$size
done
for command in create resize; do
	refuses 2 "--size '.16M': must be 1 to 64T .*, and not relative: give the whole size" \
		"$ctl" volume $command a --size=+16M
	refuses 2 "--size '1.5G': must be 1 to 64T .*, and no fraction: use a smaller unit" \
		"$ctl" volume $command a --size=1.5G
done
for align in 0 1M 3M 6M 2G; do
	refuses 2 "--align '$align': must be" "$ctl" volume create a --size 16M --align="$align"
done
refuses 2 '--memory is missing' "$ctl" volume qemu-args a
refuses 2 '--memory is missing' "$ctl" volume libvirt-xml a
refuses 2 "--memory '1.5G': must be .*, and no fraction" "$ctl" volume qemu-args a --memory 1.5G
refuses 2 "--memory '1': must be" "$ctl" volume qemu-args a --memory 1
for bits in 31 53 x; do
	refuses 2 "--phys-bits '$bits': must be" \
		"$ctl" volume qemu-args a --memory 1G --phys-bits "$bits"
done
refuses 2 "--machine '1': must be" "$ctl" volume qemu-args a --memory 1G --machine 1
refuses 2 'volume create: takes no --memory' "$ctl" volume create a --size 16M --memory 1G
refuses 2 'volume libvirt-xml: takes no --json' "$ctl" volume libvirt-xml a --memory 1G --json
refuses 2 'info: takes no --size' "$ctl" info x --size 16M

# --- permissions -------------------------------------------------------------------------------

if [[ ${#unprivileged[@]} -gt 0 ]]; then
	chmod 755 .
	cp "$ctl" ctl && chmod 755 ctl
	for command in 'zone show' 'zone destroy z' 'volume list' 'volume delete a' \
		'volume create a --size 16M' 'volume resize a --size 16M' 'volume rename a b' \
		'zone extend z'; do
		# shellcheck disable=SC2086 # words
		refuses 1 'run it as root' "${unprivileged[@]}" ./ctl $command
	done
	expect 8 "${unprivileged[@]}" ./ctl volume check a
	complains 'run it as root'
	expect 1 "${unprivileged[@]}" ./ctl -j volume delete a
	complains 'run it as root'
	json 'd == {"reason": "failed"}'
fi

# --- reasons for programs ----------------------------------------------------------------------

# no zone has this name; LVM need not be installed
if [[ $(id -u) -eq 0 ]]; then
	for command in 'zone show no-such' 'zone destroy no-such' 'volume list no-such' \
		'volume show no-such/a' 'volume activate no-such/a' 'volume delete no-such/a' \
		'volume create no-such/a --size 16M' 'volume resize no-such/a --size 16M' \
		'volume rename no-such/a b' 'volume rename --force no-such/pvc-0 b' 'zone extend no-such' \
		'zone extend no-such /dev/null'; do
		# shellcheck disable=SC2086 # words
		expect 9 "$ctl" -j $command
		json 'd == {"reason": "no-zone"}'
		# shellcheck disable=SC2086 # words
		refuses 9 'zone|LVM|device mapper' "$ctl" $command
	done
fi
echo "$checks checks"
