# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of kernel/tests/mutants/run, csi-driver/test/mutants/run and e2e/mutants/run. They
# break the code on purpose, with one mutant at a time, and expect that a test fails for each
# mutant. A mutant is a sed script. Its header names the files that it breaks (`# file:`), and its
# tests. The run fails if the tests pass with a mutant, or if a mutant leaves one of its files
# unchanged or does not build.
#
# A runner has two functions:
#   cases MUTANT    the tests that must fail, one a line
#   try CASE        in a copy of the tree: 0 when it passes, 1 when it fails, 2 when it could not
#                   run (no build); $said has the reason in a line, if not 0

said=
declare -A sound

# value KEY MUTANT: prints the value of the key in the mutant's header.
value() {
	sed -n "s/^# $1: *//p" "$2"
}

# stale ROOT MUTANT: prints each part of the mutant that is out of date. mk/lint/mutants calls it
# for all.
stale() {
	local file files
	read -ra files <<<"$(value file "$2")"
	[[ ${#files[@]} -gt 0 ]] || echo "its header has no '# file:'"
	if ! sed -f "$2" </dev/null >/dev/null 2>&1; then
		echo 'sed cannot read it'
		return
	fi
	for file in "${files[@]}"; do
		if [[ ! -f $1/$file ]]; then
			echo "there is no $file"
		elif cmp -s <(sed -f "$2" "$1/$file") "$1/$file"; then
			echo "$file has changed, and the mutant must follow"
		fi
	done
}

# copy_tree ROOT PATH...: copies these paths, and changes to the copy's folder. The mutant changes
# the copy.
copy_tree() {
	root=$1
	shift
	tree=$(mktemp -d)
	trap 'rm -rf "$tree"' EXIT
	cp -r "${@/#/$root/}" "$tree"
	cd "$tree" || exit
}

# run_mutants FOLDER [NAME...]: runs the named mutants of the folder, or all.
run_mutants() {
	local here=$1 all mutant failed=0
	shift
	all=("$here"/*.sed)
	if [[ $# -gt 0 ]]; then
		all=("${@/%.sed/}")
		all=("${all[@]/#/$here/}")
		all=("${all[@]/%/.sed}")
	fi
	for mutant in "${all[@]}"; do
		[[ -r $mutant ]] || { echo "no mutant $mutant" >&2; exit 2; }
	done
	for mutant in "${all[@]}"; do
		run_mutant "$mutant" || failed=$((failed + 1))
	done
	echo "${#all[@]} checks"
	[[ $failed -eq 0 ]] || { echo "$failed of ${#all[@]} mutants were not killed" >&2; exit 1; }
}

# is_sound CASE: checks that the case passes without a mutant. A case that fails on the original
# code proves nothing.
is_sound() {
	if [[ -z ${sound[$1]:-} ]]; then
		sound[$1]=yes
		try "$1" || {
			sound[$1]=no
			echo "$1 fails even without a mutant: $said" >&2
			tail -n 25 ./*.log >&2
		}
	fi
	[[ ${sound[$1]} == yes ]]
}

# run_mutant MUTANT: prints one verdict, with a line for each case of the mutant.
run_mutant() {
	local files file case why start verdict status bad=0
	why=$(stale "$root" "$1")
	[[ -n $(cases "$1") ]] || why='its header names no test'
	if [[ -n $why ]]; then
		say "$1" "does not apply: ${why//$'\n'/; }" 0
		return 1
	fi
	for case in $(cases "$1"); do
		is_sound "$case" && continue
		say "$1" "not judged: $case fails without it" 0
		return 1
	done
	read -ra files <<<"$(value file "$1")"
	for file in "${files[@]}"; do sed -f "$1" "$root/$file" >"$file"; done
	for case in $(cases "$1"); do
		start=$EPOCHSECONDS
		status=0
		try "$case" || status=$?
		case $status in
		0) verdict="SURVIVED $case" bad=1 ;;
		1) verdict="killed by $case: $said" ;;
		*) verdict="does not run $case: $said" bad=1 ;;
		esac
		say "$1" "$verdict" "$((EPOCHSECONDS - start))"
	done
	for file in "${files[@]}"; do cp "$root/$file" "$file"; done
	return "$bad"
}

# say MUTANT VERDICT SECONDS
say() {
	printf '%-26s %s (%d s)\n' "$(basename "$1" .sed)" "$2" "$3"
}
