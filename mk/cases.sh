# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Running and counting cases, for mk/run-tests. A case is a command with a name and a time limit;
# it passes when it exits with 0. A case that says "N checks" on a line of its own is shown with it.

logs=build/logs
results=$logs/results # one line per case: ok|FAIL|late suite/name; late: not run, BUDGET used up
running=0
suites=() # what end_run says of each

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
	local said
	if [[ $(wc -l <"$results") -eq $suite_before ]]; then
		report FAIL nothing-to-run "suite $suite has no case named like '$ONLY'"
	fi
	said=$(tail -n +$((suite_before + 1)) "$results" | awk -v suite="$suite" \
		-v took="$(since "$suite_start")" '
		{ n[$1]++ }
		END { printf "%-8s %4d passed  %3d failed  %3d not run  %s", suite,
			n["ok"], n["FAIL"], n["late"], took }')
	suites+=("$said")
	echo "== $said"
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

# at_most SECONDS: that, or what is left of the whole run's BUDGET if it is less.
at_most() {
	local left=$1
	if [[ -n ${BUDGET:-} ]]; then
		left=$((BUDGET - EPOCHSECONDS + ${run_start%.*}))
	fi
	echo $((left < $1 ? left : $1))
}

# too_late NAME: BUDGET is used up, and NAME will not be run.
too_late() {
	[[ $(at_most 1) -lt 1 ]] || return 1
	grep -q '^late ' "$results" ||
		echo "The budget of $BUDGET s is used up: nothing more is started."
	echo "late $suite/$1" >>"$results"
}

# start_case NAME LIMIT COMMAND...: run it beside others, up to $JOBS at once. What the whole run's
# BUDGET leaves no time for has failed: a count that leaves it out would say too much.
start_case() {
	# shellcheck disable=SC2053 # ONLY is a pattern
	[[ $1 == $ONLY ]] || return 0
	while [[ $running -ge $JOBS ]]; do
		wait -n || true
		running=$((running - 1))
	done
	! too_late "$1" || return 0
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
	local name=$1 limit start=$EPOCHREALTIME log status=0 checks
	local asked=$2
	limit=$(at_most "$asked")
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
	[[ $status -ne 124 ]] || echo "no end within its limit of $limit s$(
		[[ $limit -eq $asked ]] || echo ", all that the budget of $BUDGET s left")" >>"$log"
	report FAIL "$name" "exit $status, $(since "$start"), whole output in $log" "$log"
}

# build_step GOAL...: what a suite needs; a failure is a failed case of it.
build_step() {
	local log start=$EPOCHREALTIME
	log=$logs/$suite/build.log
	! too_late build || return 1
	if mk "$@" >>"$log" 2>&1; then
		echo "     built $* ($(since "$start"))"
		return 0
	fi
	[[ $(at_most 1) -eq 1 ]] || echo "cut off by the budget of $BUDGET s" >>"$log"
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

# failed_how SUITE/CASE: its name and what it said last, where whoever reads the end alone sees it.
failed_how() {
	local suite=${1%%/*} name=${1#*/}
	echo "  $1"
	tail -n 8 "$logs/$suite/${name//\//-}.log" 2>/dev/null | cut -c -300 | sed 's/^/  | /' || true
}

end_run() {
	local passed failed late
	passed=$(grep -c '^ok ' "$results" || true)
	failed=$(grep -cE '^(FAIL|late) ' "$results" || true)
	late=$(grep -c '^late ' "$results" || true)
	echo
	if [[ $failed -gt $late ]]; then
		echo "Failed:"
		sed -n 's/^FAIL //p' "$results" | while read -r name; do failed_how "$name"; done
	fi
	if [[ $late -gt 0 ]]; then
		echo "Not run, as the budget of $BUDGET s was used up, and so counted as failed:"
		sed -n 's/^late /  /p' "$results"
	fi
	[[ ${#suites[@]} -lt 2 ]] || printf '%s\n' "${suites[@]}"
	echo "Took $(since "$run_start"); logs are in $logs"
	echo "$passed passed, $failed failed"
	[[ $failed -eq 0 && $passed -gt 0 ]]
}
