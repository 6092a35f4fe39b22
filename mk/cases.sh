# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Running and counting cases, for mk/run-tests. A case is a command with a name and a time limit;
# it passes when it exits with 0. A case that says "N checks" on a line of its own is shown with it.

logs=build/logs
results=$logs/results # one line per finished case: ok|FAIL suite/name
running=0

begin_run() {
	trap stop_cases INT TERM
	mkdir -p "$logs"
	: >"$results"
	run_start=$EPOCHREALTIME
}

begin_suite() {
	suite=$1
	suite_start=$EPOCHREALTIME
	suite_before=$(wc -l <"$results")
	rm -rf "${logs:?}/$suite"
	mkdir -p "$logs/$suite"
	echo "== $suite"
}

# A suite without a case has proved nothing.
end_suite() {
	local cases=$(($(wc -l <"$results") - suite_before))
	if [[ $cases -eq 0 ]]; then
		report FAIL nothing-to-run "suite $suite has no case named like '$ONLY'"
	fi
	echo "== $suite: $cases cases, $(since "$suite_start")"
}

# since START: the time from START to now, for people.
since() {
	awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {
		s = b - a
		if (s < 60) printf "%.1f s", s; else printf "%d min %02d s", s / 60, s % 60
	}'
}

# report ok|FAIL NAME REMARK [LOG]: one finished case, seen and counted; the end of its log under
# it, in one write, so that cases which fail together do not mix their lines.
report() {
	local tail=
	[[ $# -lt 4 ]] || tail=$'\n'$(tail -n 25 "$4" | sed 's/^/     | /')
	printf '%-4s %s (%s)%s\n' "$1" "$suite/$2" "$3" "$tail"
	echo "$1 $suite/$2" >>"$results"
}

# start_case NAME LIMIT COMMAND...: run it beside others, up to $JOBS at once. What the whole run's
# BUDGET leaves no time for has failed: a count that leaves it out would say too much.
start_case() {
	# shellcheck disable=SC2254 # ONLY is a pattern
	case $1 in ${ONLY}) ;; *) return 0 ;; esac
	if [[ -n ${BUDGET:-} && $((EPOCHSECONDS - ${run_start%.*})) -ge $BUDGET ]]; then
		report FAIL "$1" "not run: the $BUDGET s for everything are used up"
		return 0
	fi
	while [[ $running -ge $JOBS ]]; do
		wait -n || true
		running=$((running - 1))
	done
	run_case "$@" &
	running=$((running + 1))
}

# Whoever stops the run stops what it has started.
stop_cases() {
	local case
	for case in $(jobs -p); do
		kill "$case" 2>/dev/null || true
	done
	wait
	echo "stopped" >&2
	exit 130
}

wait_cases() {
	wait
	running=0
}

run_case() {
	local name=$1 limit=$2 start=$EPOCHREALTIME log status=0 checks
	log=$logs/$suite/${name//\//-}.log
	shift 2
	# timeout passes a signal on to the whole process group of the command.
	timeout --kill-after=30 "$limit" "$@" >"$log" 2>&1 </dev/null &
	trap 'kill "$!"' INT TERM
	wait "$!" || status=$?
	if [[ $status -eq 0 ]]; then
		checks=$(sed -nE 's/^([0-9]+ checks)\b.*/\1, /p' "$log" | tail -n 1)
		report ok "$name" "$checks$(since "$start")"
		return
	fi
	[[ $status -ne 124 ]] || echo "no end within its limit of $limit s" >>"$log"
	report FAIL "$name" "exit $status, $(since "$start"), whole output in $log" "$log"
}

# build_step GOAL...: what a suite needs; a failure is a failed case of it.
build_step() {
	local log start=$EPOCHREALTIME
	log=$logs/$suite/build.log
	if mk "$@" >>"$log" 2>&1; then
		echo "     built $* ($(since "$start"))"
		return 0
	fi
	report FAIL build "make $*, whole output in $log" "$log"
	return 1
}

# packages GROUP...: see to them before cases that run at once would all try.
packages() {
	mk/deps "$@" || { report FAIL packages "mk/deps $*"; return 1; }
}

# header KEY FILE: the value of a line "# KEY: value" at the top of a script.
header() {
	sed -nE "/^[^#]/q; s/^# $1: *//p" "$2" | head -n 1
}

end_run() {
	local passed failed
	passed=$(grep -c '^ok ' "$results" || true)
	failed=$(grep -c '^FAIL ' "$results" || true)
	echo
	if [[ $failed -gt 0 ]]; then
		echo "Failed:"
		sed -n 's/^FAIL /  /p' "$results"
	fi
	echo "Took $(since "$run_start"); logs are in $logs"
	echo "$passed passed, $failed failed"
	[[ $failed -eq 0 && $passed -gt 0 ]]
}
