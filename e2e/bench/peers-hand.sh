#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section hand: P1 5.3. One system writes a file, and another system reads it, block by
# block. Two semaphores order the turns. Prints
#
#   hand SYSTEM WAY BLOCK BYTES NANOSECONDS
#
# With WAY local, as in P1, the writer runs where the file is. For 9p and virtiofs, this is the
# host. For NFS and Samba, it is the server, with its ext4-dax. With StargateFS, the file is in all
# systems. Both sides poll two words of memory, which order the turns.
#
# With WAY through, two guests access the file by SYSTEM, and semaphores of StargateFS order the
# turns. These semaphores poll before they sleep.
#
# SYSTEM turns has turns, but no file. SYSTEM outside is StargateFS, but a program on the host
# writes the file by the engine, because the host's kernel loads no module. outside exists only with
# WAY local.
#
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

rounds=${SG_ROUNDS:-$(scaled 1 5 9)} turns=${SG_TURNS:-$(scaled 500 3000 20000)}
order=(stargatefs outside turns 9p virtiofs nfs smb)
folder[outside]=/mnt/sg
blocks=(1024 4096 1048576)
export LC_ALL=C

# times SYSTEM BLOCK: prints the number of blocks, which is lower for slow systems.
times() {
	local n=$turns
	case $1 in
	9p | virtiofs) n=$((n / 5)) ;;
	nfs | smb) n=$((n / 20)) ;;
	esac
	[[ $2 -lt 1048576 ]] && echo "$n" || echo $(((n + 19) / 20))
}

gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/handover" "$root/e2e/programs/handover.c" "$root"/kernel/lib/*.c || fail "handover.c"
for guest in "${guests[@]}"; do put "$work/handover" /root/handover "$guest"; done

# A page of the volume for the turns. This script finds the page in the volume's memory by its
# content.
mark=hand-$$-$RANDOM-$RANDOM
at g1 "yes $mark | head -c 4096 >/mnt/sg/turns && sync /mnt/sg/turns"
offset=$(grep -abo "$mark" "$RIG_RANGE" | awk -F : '$1 % 4096 == 0 { print $1; n++ } END { exit n != 1 }') ||
	fail "the host does not find the page of /mnt/sg/turns exactly once in the volume"

fresh_turns() {
	on g1 'dd of=/mnt/sg/turns conv=notrunc status=none' \
		< <(head -c 64 /dev/zero; printf '\1'; head -c 4031 /dev/zero) || fail "turns"
	[[ $(od -An -tu8 -j $((offset + 64)) -N 8 "$RIG_RANGE" | tr -d ' ') == 1 ]] ||
		fail "the page that the host has found is not the page of /mnt/sg/turns"
}

# A process on the host joins the volume as a system.
joined() {
	env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$root" build/tests/machine >&2 ||
		fail "tests/machine does not build"
	coproc beside { exec "$SG_TOOLS/../tests/machine"; }
	exec {told}>&"${beside[1]}" {said}<&"${beside[0]}" # subshells have no descriptors of a coproc
	say join "$RIG_RANGE" 11111111-2222-3333-4444-555555555501 1
}
say() {
	local answer
	echo "$*" >&"$told"
	read -r -t 120 -u "$said" answer || fail "the program outside does not answer"
	[[ $answer == ok ]] || { echo "the program outside: $*: $answer" >&2; return 1; }
}

file() { [[ $1 == turns ]] && echo - || echo "${folder[$1]}/hand"; }

# For WAY local: the system in which the writer runs.
declare -A whose=([stargatefs]=g2 [turns]=g2 [outside]=beside
	[9p]=outside [virtiofs]=outside [nfs]=$server [smb]=$server)

writes_local() { # SYSTEM BLOCK COUNT
	local words="write FILE $2 $3"
	case ${whose[$1]} in
	beside) say hand 0 hand "$2:$3:$offset" ;;
	outside)
		# shellcheck disable=SC2086 # words
		timeout 300 "$work/handover" ${words/FILE/"$RIG_SHARES/$1/bench/hand"} \
			turns="$RIG_RANGE:$offset"
		;;
	g2) on g2 "timeout 300 /root/handover ${words/FILE/$(file "$1")} turns=/mnt/sg/turns:0" ;;
	*) on "$server" "timeout 300 /root/handover ${words/FILE/\/mnt\/ext4\/bench-$1\/hand} \
		turns=/mnt/sg/turns:0" ;;
	esac </dev/null
}

writes_through() {
	on g2 "timeout 300 /root/handover write $(file "$1") $2 $3 direct" </dev/null
}

hand() { # SYSTEM WAY BLOCK
	local count reader place=''
	count=$(times "$1" "$3")
	[[ $1 == turns ]] ||
		at g1 "cd ${folder[$1]} && rm -f hand && truncate -s $(($3 * count)) hand && sync -f ."
	if [[ $2 == local ]]; then
		fresh_turns
		place=turns=/mnt/sg/turns:0
	else
		at g1 'stargate-sem rm handover-full; stargate-sem rm handover-empty
			stargate-sem create handover-full --value 0 &&
			stargate-sem create handover-empty --value 1' 2>/dev/null
	fi
	on g1 "timeout 300 /root/handover read $(file "$1") $3 $count direct $place" \
		</dev/null >"$work/read" 2>&1 &
	reader=$!
	"writes_$2" "$1" "$3" "$count" >"$work/write" 2>&1 || fail "$1 $2 $3: $(<"$work/write") $(<"$work/read")"
	wait "$reader" || fail "$1 $2 $3: $(<"$work/read")"
	[[ $1 == turns ]] || at g1 "rm ${folder[$1]}/hand"
	echo "hand $1 $2 $3 $(<"$work/read")"
}

serve nfs smb
joined
for guest in "${clients[@]}"; do prepare "$guest" "${order[@]/turns/tmpfs}"; done
load
for ((round = 1; round <= rounds; round++)); do
	for way in local through; do
		step "round $round, $way" >&2
		for block in "${blocks[@]}"; do
			for system in "${order[@]}"; do
				[[ $way-$system == through-outside ]] || hand "$system" "$way" "$block"
			done
		done
	done
done
load
say leave 0
at g1 'rm -f /mnt/sg/turns'
leave
