#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/together runs this inside the rig. Measures how much several systems on one file system
# slow each other down, and tests which actions have effects that other systems see. Prints lines of
# these kinds:
#
#   rate FILESYSTEM ROW SYSTEMS CALLS-PER-SECOND    one round: the sum of all systems
#   wait FILESYSTEM ROW COUNT MEDIAN P99 LONGEST    in nanoseconds
#   sees FILESYSTEM PROPERTY ANSWER                 see properties.sh
#   load NUMBER                                     the machine's load, before and after
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/bench/properties.sh
source "$(dirname "$0")/properties.sh"

ms=${SG_MS:-700} rounds=${SG_ROUNDS:-3} turns=${SG_TURNS:-500} cuts=${SG_CUTS:-100}
read -ra guests <<<"$RIG_GUESTS"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A ear

load() { echo "load $(cut -d ' ' -f 1 /proc/loadavg)"; }

# begin GUEST ARGUMENT...: starts the program together in a guest. It waits until `go` starts all
# programs.
jobs=()
begin() {
	local guest=$1 id=${#jobs[@]}
	shift
	: >"$work/said.$id" # removes the output of the previous run, which `go` must not read
	on "$guest" "exec /root/together $*" <"$work/start.$id" >"$work/said.$id" 2>&1 &
	jobs+=($!)
}

# go: starts all programs at the same moment, and waits for their end. $work/said.N has the output
# of the program number N.
go() {
	local id tries
	for id in "${!jobs[@]}"; do
		for ((tries = 0; tries < 3000; tries++)); do
			! grep -q ready "$work/said.$id" || break
			kill -0 "${jobs[id]}" 2>/dev/null || break
			sleep 0.01
		done
		grep -q ready "$work/said.$id" || fail "together: $(<"$work/said.$id")"
	done
	for id in "${!jobs[@]}"; do echo go >&"${ear[$id]}"; done
	for id in "${!jobs[@]}"; do
		wait "${jobs[id]}" || fail "together: status $?: $(tail -n 1 "$work/said.$id")"
	done
	jobs=()
}
said() { tail -n 1 "$work/said.$1"; }

for ((id = 0; id < ${#guests[@]}; id++)); do
	mkfifo "$work/start.$id"
	exec {fd}<>"$work/start.$id"
	ear[$id]=$fd
done

# --- throughput -----------------------------------------------------------------------------------

# rate FILESYSTEM ROW OPERATION DIR NAME SYSTEMS: in DIR and NAME, %g stands for the number of the
# system.
rate() {
	local n round id
	for ((round = 0; round < rounds; round++)); do
		for ((n = 0; n < $6; n++)); do
			begin "${guests[n]}" rate "$3" "${4//%g/$n}" "${5//%g/$n}" "$ms"
		done
		go
		for ((id = 0; id < $6; id++)); do said "$id"; done |
			awk -v what="rate $1 $2 $6" '{ sum += $1 / $2 * 1e9 } END { printf "%s %d\n", what, sum }'
	done
}

# rates FILESYSTEM MOUNT SYSTEMS
rates() {
	local n=$3
	rate "$1" create-apart create "$2/bench/%g" of-%g "$n"
	rate "$1" create-together create "$2/bench/all" of-%g "$n"
	rate "$1" stat-apart stat "$2/bench/%g" file "$n"
	rate "$1" stat-together stat "$2/bench/all" stat-%g "$n"
	rate "$1" stat-same stat "$2/bench/all" stat-all "$n"
	rate "$1" write-apart write "$2/bench/%g" data "$n"
	rate "$1" write-together write "$2/bench/all" data-%g "$n"
	rate "$1" write-same write "$2/bench/all" data-all "$n"
}

# --- waiting --------------------------------------------------------------------------------------

# pair FILESYSTEM ROW COMMAND...: lets two systems take turns, and prints the times of the first.
pair() {
	local row="$1 $2"
	shift 2
	begin g1 "$@" 0 "$turns"
	begin g2 "$@" 1 "$turns"
	go
	if [[ $(said 0) == never || $(said 1) == never ]]; then
		echo "wait $row never"
	else
		echo "wait $row $(said 0)"
	fi
}

# cut_while ROW: g1 truncates a file again and again. With some ROWs, g2 maps the file. With one of
# them, two more systems make and remove names.
cut_while() {
	local churn=() n
	case $1 in
	*mapped*)
		on g2 'rm -f /tmp/mapped
			cd /mnt/sg/bench
			(echo go; sleep 600) | /root/together map cut >/tmp/mapped 2>&1 &
			for i in $(seq 200); do
				! grep -qs ready /tmp/mapped || exit 0
				sleep 0.05
			done
			cat /tmp/mapped; exit 1' </dev/null || fail "g2 does not map the file"
		;;
	esac
	case $1 in
	*churn*)
		for ((n = 2; n < ${#guests[@]}; n++)); do
			echo go | on "${guests[n]}" "timeout -k 1 600 /root/together rate create \
				/mnt/sg/bench/all churn-$n 600000" >/dev/null 2>&1 &
			churn+=($!)
		done
		;;
	esac
	begin g1 cut /mnt/sg/bench/cut 65536 "$cuts"
	go
	echo "wait stargatefs $1 $(said 0)"
	for n in "${guests[@]}"; do on "$n" 'pkill -KILL -x together || true' </dev/null; done
	wait "${churn[@]}" || true
}

# --- the whole run --------------------------------------------------------------------------------

prepare() { # MOUNT
	on g1 "mkdir -p $1/bench/{0,1,2,3,all}" </dev/null || fail "no folders in $1"
	[[ $(on g2 "ls $1/bench" </dev/null | wc -l) -eq 5 ]] || fail "g2 does not see the folders in $1"
}

program_everywhere together locks observer
load
declare -A mounts=([stargatefs]=/mnt/sg [9p]=/mnt/9p [virtiofs]=/mnt/virtiofs
	[virtiofs-auto]=/mnt/virtiofs-auto)
for fs in stargatefs 9p virtiofs virtiofs-auto; do
	step "$fs" >&2
	prepare "${mounts[$fs]}"
	properties "$fs" "${mounts[$fs]}"
	rates "$fs" "${mounts[$fs]}" 1
	rates "$fs" "${mounts[$fs]}" 2
	pair "$fs" pass pass "${mounts[$fs]}/bench/pass"
	for kind in flock posix; do
		! excludes "$fs" "$kind" || pair "$fs" "ring-$kind" ring "$kind" "${mounts[$fs]}/bench/ring-$kind"
	done
done
[[ ${#guests[@]} -lt 4 ]] || rates stargatefs /mnt/sg 4
for row in cut cut-mapped cut-mapped-churn; do cut_while "$row"; done
load
